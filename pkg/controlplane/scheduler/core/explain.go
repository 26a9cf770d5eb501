package core

import (
	"github.com/karmada-toolkit/karmada/pkg/controlplane/replicas"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

type passRecord struct {
	term     string
	strategy strategy
	records  []record
	sets     bool
	demand   replicas.Demand
	set      replicas.SetDemand
	err      error
	reasons  []framework.Verdict
}
