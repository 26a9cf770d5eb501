package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// shared are the clusters that Main stops.
var shared struct {
	sync.Mutex
	clusters []*Cluster
}

// Shared returns a function that starts a cluster when a test first calls it, for the tests of a process whose TestMain calls Main.
// Each has objects of its own in the cluster, and none takes it down.
func Shared(spec Spec) func(tb testing.TB) *Cluster {
	var once sync.Once
	var c *Cluster
	var err error
	return func(tb testing.TB) *Cluster {
		tb.Helper()
		binary := Binary(tb, "kubelite")
		once.Do(func() { c, err = share(binary, spec) })
		if err != nil {
			tb.Fatalf("starting cluster %q, which tests share: %v", spec.Name, err)
		}
		tb.Cleanup(func() { c.explain(tb) })
		return c
	}
}

func share(binary string, spec Spec) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "testenv-shared-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{DataDir: filepath.Join(dir, "data"), LogFile: filepath.Join(dir, "kubelite.log"), spec: spec}
	shared.Lock()
	defer shared.Unlock()
	shared.clusters = append(shared.clusters, c)
	return c, c.launch(binary)
}

// Main runs the tests of a process, and then stops the clusters that they shared.
func Main(m *testing.M) {
	code := m.Run()
	for _, c := range shared.clusters {
		if c.exited != nil {
			if err := c.stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		_ = os.RemoveAll(filepath.Dir(c.DataDir))
	}
	os.Exit(code)
}
