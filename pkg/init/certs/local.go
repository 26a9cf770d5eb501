package certs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Local is a federation on one machine whose clusters are processes.
type Local struct {
	// Dir has everything that the federation keeps. Own are the directories in it of the control plane, whose authorities it has.
	Dir string
	Own []string
	// Kubeconfig of the control plane.
	Kubeconfig string
	// Restart restarts the processes, which read authorities once, and returns when they are ready.
	Restart func(context.Context) error
	// Metrics returns the metrics of the processes that take new certificates over, by their names.
	Metrics func(context.Context) (map[string][]byte, error)
	// Timeout is how long the control plane may take to answer, and processes to take certificates over.
	Timeout time.Duration
}

func (l *Local) own(context.Context) (*inventory, error) {
	contents, err := fileContents(l.Dir)
	if err == nil && len(contents) == 0 {
		err = fmt.Errorf("there are no certificates in %s", l.Dir)
	}
	for _, c := range contents {
		c.signs = slices.ContainsFunc(l.Own, func(dir string) bool { return filepath.Dir(c.Name) == filepath.Join(dir, "pki") })
	}
	return &inventory{contents: contents}, err
}

func (l *Local) connect(ctx context.Context) (client.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	return connected(ctx, cfg, l.Timeout)
}

func (l *Local) kept(context.Context, named) (string, error) { return "", nil }

func (l *Local) rollOut(ctx context.Context, which restarts) error {
	if which < restartForAuthorities {
		all, err := l.own(ctx)
		if err != nil {
			return err
		}
		served, err := l.served(ctx)
		if err != nil {
			return err
		}
		if now := serialsIn(all.contents); !slices.ContainsFunc(served, func(serial string) bool { return !now[serial] }) {
			return l.loaded(ctx, now)
		}
	}
	return l.Restart(ctx)
}

// served returns the serial number of the certificate of the API server, which loads it once.
func (l *Local) served(ctx context.Context) ([]string, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	conn, err := (&net.Dialer{Timeout: l.Timeout}).DialContext(ctx, "tcp", strings.TrimPrefix(cfg.Host, "https://"))
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return servedSerial(ctx, conn)
}

// loaded waits until the other processes use certificates with some serial numbers.
func (l *Local) loaded(ctx context.Context, now map[string]bool) error {
	return wait.Until(ctx, wait.Options{Timeout: l.Timeout}, func(ctx context.Context) error {
		metrics, err := l.Metrics(ctx)
		if err != nil {
			return err
		}
		for _, process := range sortedKeys(metrics) {
			if slices.ContainsFunc(serialsOf(metrics[process]), func(serial string) bool { return !now[serial] }) {
				return fmt.Errorf("%s to use its new certificates", process)
			}
		}
		return nil
	})
}

func (l *Local) statePath() string { return filepath.Join(l.Own[0], components.RenewalSecret+".json") }

func (l *Local) load(context.Context) (map[string][]byte, error) {
	data, err := os.ReadFile(l.statePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out map[string][]byte
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", l.statePath(), err)
	}
	return out, nil
}

func (l *Local) store(_ context.Context, state map[string][]byte) error {
	if state == nil {
		if err := os.Remove(l.statePath()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return pki.WriteFile(l.statePath(), data, 0o600)
}
