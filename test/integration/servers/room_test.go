//go:build integration

// Package servers_test tests the servers of a control plane behind real API servers. The tests run beside one another: each has API
// servers of its own, or objects of its own in those that several share.
package servers_test

import (
	"flag"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestMain has the servers log with -v, for all tests of this process.
func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if testing.Verbose() {
		ctrl.SetLogger(klog.Background())
	}
	m.Run()
}
