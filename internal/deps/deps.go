// Package deps pins modules while the tree is being laid out.
package deps

import (
	_ "github.com/distribution/reference"
	_ "github.com/evanphx/json-patch/v5"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/uuid"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/robfig/cron/v3"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "github.com/spf13/pflag"
	_ "github.com/yuin/gopher-lua"
	_ "golang.org/x/sync/errgroup"
	_ "google.golang.org/grpc"
	_ "k8s.io/apiserver/pkg/server"
	_ "k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/cluster-bootstrap/token/api"
	_ "k8s.io/component-base/cli"
	_ "k8s.io/component-helpers/apimachinery/lease"
	_ "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	_ "k8s.io/kube-openapi/pkg/common"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/metrics/pkg/client/clientset/versioned"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/kind/pkg/cluster"
	_ "sigs.k8s.io/yaml"
)
