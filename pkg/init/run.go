package installer

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/apply"
)

// Deps are what an installation works with.
type Deps struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Host is how the host cluster is reached.
	Host *rest.Config
	// Progress is told of the phases. It is called from several goroutines.
	Progress Progress
	// Now is the clock.
	Now func() time.Time
}

// Progress is told what an installation does.
type Progress interface {
	// Begin says that a step has begun.
	Begin(step string)
	// Waiting says what a step that takes long is waiting for.
	Waiting(step, what string)
	// Done says that a step is done and what came of it.
	Done(step, result string)
}

// Result is what came of an installation.
type Result struct {
	// Changes are what was done to the objects of both clusters, in no order.
	Changes apply.ChangeSet
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Server is the URL of the API server in it.
	Server string
	// Token is a bootstrap token, empty unless one was asked for, and CAHash the
	// hash of the authority by which a cluster that registers knows the server.
	Token, CAHash string
}

// Run makes sure that the control plane that o describes is installed and works.
func Run(_ context.Context, _ Deps, _ Options) (*Result, error) {
	return nil, errors.New("not implemented")
}
