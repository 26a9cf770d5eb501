// Package kubelite runs a whole Kubernetes cluster in one process: etcd, kube-apiserver, kube-controller-manager
// and, when it has nodes, kube-scheduler and nodes simulated by kwok.
//
// It is the only package that imports k8s.io/kubernetes and etcd's server. The packages of Kubernetes keep global
// state, so a process can run one cluster only, once.
package kubelite

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/memory"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/wait"
)

const protobuf = "application/vnd.kubernetes.protobuf"

const (
	readyTimeout      = 2 * time.Minute
	readyPollInterval = 10 * time.Millisecond
	readyRequestLimit = 2 * time.Second
	// stopTimeout is how long each group of components may take to end.
	stopTimeout = 2 * time.Second
	// startGCPercent is the garbage collector's setting during the start, when nearly everything made stays.
	startGCPercent = 400
)

// Run runs a cluster until ctx ends. It can be called once in a process.
func Run(ctx context.Context, cfg Config) error {
	started := cfg.Now()
	debug.SetGCPercent(startGCPercent)
	cfg, err := cfg.complete()
	if err != nil {
		return err
	}
	logs, err := setupLogs(cfg)
	if err != nil {
		return err
	}
	defer logs.close()
	dir, err := openDataDir(cfg.DataDir)
	if err != nil {
		return err
	}
	defer dir.close()
	// A cluster that ends is not ready, also while its components still answer.
	defer context.AfterFunc(ctx, func() { _ = dir.removeReady() })()
	c := &cluster{cfg: cfg, dir: dir, logs: logs, started: started}
	if err := c.prepare(); err != nil {
		return err
	}
	return c.run(ctx)
}

// cluster is a cluster that starts, runs and stops.
type cluster struct {
	cfg     Config
	dir     *dataDir
	logs    logs
	started time.Time

	listener   net.Listener
	etcd       *etcdServer // nil with an external one
	etcdFailed <-chan error
	certs      certificates
	server     string
	kubeconfig string
	// token authenticates the components to the API server, internal is the path of their kubeconfig. A certificate
	// would be verified at every request, which takes the API server longer than many requests themselves.
	token    string
	internal string
}

// prepare opens and makes what the components need: the port, etcd and the certificates.
func (c *cluster) prepare() (err error) {
	if c.listener, err = c.dir.listen(c.cfg.BindAddress, c.cfg.SecurePort); err != nil {
		return err
	}
	c.server = serverURL(c.listener.Addr())
	c.etcdFailed = make(chan error) // an external one does not fail here
	if len(c.cfg.Etcd.Servers) == 0 {
		if c.etcd, err = startEtcd(c.cfg, c.dir, c.logs); err != nil {
			return errors.Join(err, c.listener.Close())
		}
		c.etcdFailed = c.etcd.failed
	}
	if err := c.writeCredentials(); err != nil {
		c.stopEtcd()
		return errors.Join(err, c.listener.Close())
	}
	return nil
}

func (c *cluster) writeCredentials() (err error) {
	if c.certs, err = ensureCertificates(c.cfg, pki.Dir(c.dir.join("pki"))); err != nil {
		return err
	}
	c.token = uuid.NewString()
	c.kubeconfig, c.internal = c.dir.join("kubeconfig"), c.dir.join("pki", "components.kubeconfig")
	entry := pki.KubeconfigEntry{Context: "components", Server: c.server, CA: c.certs.bundle, Token: c.token}
	if err := writeKubeconfig(c.internal, entry); err != nil {
		return err
	}
	entry.Context, entry.Token, entry.Client = c.cfg.ContextName, "", c.certs.admin
	if err := writeKubeconfig(c.kubeconfig, entry); err != nil {
		return err
	}
	if c.cfg.WriteKubeconfig == "" {
		return nil
	}
	return writeKubeconfig(c.cfg.WriteKubeconfig, entry)
}

// writeKubeconfig writes a file unless it has the same content.
func writeKubeconfig(path string, entry pki.KubeconfigEntry) error {
	config, err := pki.NewKubeconfig(entry)
	if err != nil {
		return err
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig: %w", err)
	}
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	return pki.WriteKubeconfig(path, config)
}

// run starts the components, publishes when the cluster is ready, and stops everything when ctx ends or a component
// does.
func (c *cluster) run(ctx context.Context) error {
	api, others := newComponents(ctx), newComponents(ctx)
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- c.start(starting, api, others) }()
	failed, isReady := error(nil), false
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case failed = <-started:
			isReady, done = failed == nil, failed != nil
			if isReady {
				go memory.Trim(ctx)
			}
		case failed = <-api.failed:
			done = true
		case failed = <-others.failed:
			done = true
		case failed = <-c.etcdFailed:
			done = true
		case failed = <-c.logs.gaveUp:
			done = true
		}
	}
	if ctx.Err() != nil { // stopped: what ends then has not failed
		failed = nil
	}
	cancel()
	return errors.Join(failed, c.stop(api, others, isReady))
}

// stop ends the components in the opposite order of their start. An API server that is not ready yet cannot end in
// order, since it takes what is interrupted for failures; nothing is lost when it is left behind.
func (c *cluster) stop(api, others *components, isReady bool) error {
	klog.InfoS("Stopping the cluster", "cluster", c.cfg.Name)
	err := c.dir.removeReady()
	others.stop()
	if isReady {
		api.stop()
	}
	within(stopTimeout, c.stopEtcd)
	return err
}

// start returns when the cluster is ready, or an error.
func (c *cluster) start(ctx context.Context, api, others *components) error {
	port := c.listener.Addr().(*net.TCPAddr).Port
	external := c.cfg.Etcd
	if c.etcd != nil {
		external.Servers = []string{c.etcd.endpoint}
	}
	server, err := newAPIServer(api.ctx, apiServerArgs(c.cfg, c.certs, external, port), c.listener, loopback{c.token, c.cfg.Now()})
	if err != nil {
		return err
	}
	if c.cfg.Nodes > 0 {
		if err := serveUsage(server, c.restConfig(), c.cfg.Now); err != nil {
			return err
		}
	}
	api.run("kube-apiserver", func(ctx context.Context) error { return runAPIServer(ctx, server) })
	bootstrapped := make(chan error, 1)
	go func() { bootstrapped <- bootstrap(ctx, c.restConfig()) }()
	if err := c.waitAPI(ctx, api); err != nil {
		return err
	}
	if err := <-bootstrapped; err != nil {
		return err
	}
	others.run("kube-controller-manager", func(ctx context.Context) error {
		return runControllerManager(ctx, controllerManagerArgs(c.cfg, c.certs, c.internal))
	})
	others.run("namespace reaper", func(ctx context.Context) error { return runNamespaceReaper(ctx, c.restConfig()) })
	others.run("certificate signer", func(ctx context.Context) error { return runSigner(ctx, c.restConfig(), c.certs.ca, c.cfg.Now) })
	if c.cfg.Nodes > 0 {
		others.run("kube-scheduler", func(ctx context.Context) error { return runScheduler(ctx, schedulerArgs(c.internal)) })
		if err := registerUsage(ctx, c.restConfig()); err != nil {
			return err
		}
		if err := startNodes(c.logs.kwok(others.ctx), c.cfg, c.internal); err != nil {
			return err
		}
	}
	return c.signalReady()
}

// signalReady publishes that the cluster can be used, and tunes the process for a long life.
func (c *cluster) signalReady() error {
	now := c.cfg.Now()
	info := ready.Info{
		PID: os.Getpid(), Name: c.cfg.Name, Server: c.server, Kubeconfig: c.kubeconfig,
		Version: kubernetesVersion(), StartTime: c.started, ReadyTime: now,
	}
	if c.etcd != nil {
		info.Etcd = c.etcd.endpoint
	}
	target, err := bytesOf(c.cfg.MemoryTarget)
	if err != nil {
		return err
	}
	memory.Pace(c.cfg.GCPercent, target)
	if limit, err := bytesOf(c.cfg.MemoryLimit); err == nil && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	if err := ready.Write(c.dir.path, info); err != nil {
		return fmt.Errorf("writing the ready signal: %w", err)
	}
	_, _ = fmt.Fprintf(c.cfg.Stderr, "kubelite: cluster %q is ready at %s after %s (kubeconfig %s)\n",
		c.cfg.Name, c.server, now.Sub(c.started).Round(time.Millisecond), c.kubeconfig)
	return nil
}

func (c *cluster) stopEtcd() {
	if c.etcd != nil {
		c.etcd.stop()
	}
}

// waitAPI returns when the API server reports that it is ready.
func (c *cluster) waitAPI(ctx context.Context, api *components) error {
	pool := x509.NewCertPool()
	pool.AddCert(c.certs.ca.Cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: readyRequestLimit}
	err := wait.Until(ctx, wait.Options{Interval: readyPollInterval, Timeout: readyTimeout}, func(ctx context.Context) error {
		select {
		case err := <-api.failed:
			return wait.Terminal(err)
		default:
			return probe(ctx, client, c.server+"/readyz", c.token)
		}
	})
	if errors.Is(err, wait.ErrTimeout) {
		return fmt.Errorf("waiting for the API server: %w", err)
	}
	return err
}

func probe(ctx context.Context, client *http.Client, url, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", resp.Status)
	}
	return nil
}

// restConfig is the configuration of clients inside the process.
func (c *cluster) restConfig() *rest.Config {
	return &rest.Config{
		Host:            c.server,
		QPS:             -1,
		BearerToken:     c.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.certs.ca.CertPEM()},
		ContentConfig:   rest.ContentConfig{AcceptContentTypes: protobuf + ",application/json", ContentType: protobuf},
	}
}

// serverURL is the URL for clients on this machine, or for all if the address is one that others can reach.
func serverURL(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
