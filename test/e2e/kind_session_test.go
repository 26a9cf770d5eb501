//go:build kind

package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// session is a user at a shell: a home of their own, and kind, kubectl and the
// plugin on the PATH.
type session struct {
	home string
	// data is where the user has the files of the control plane instead of in
	// /etc/karmada, and config the kubeconfig there.
	data, config string
	// node images has Kubernetes' own images as the nodes have them.
	kubeTag, etcdImage string
}

func newSession(t *testing.T) *session {
	t.Helper()
	for _, program := range []string{"kind", "kubectl", "docker"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("the tour needs %s on the PATH: %v", program, err)
		}
	}
	home := t.TempDir()
	s := &session{home: home, data: filepath.Join(home, "karmada")}
	s.config = filepath.Join(s.data, "karmada-apiserver.config")
	return s
}

// run runs a line of the shell.
func (s *session) run(line string) result {
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = s.home
	cmd.Env = s.env()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := result{out: stdout.String(), err: stderr.String(), code: cmd.ProcessState.ExitCode()}
	if err != nil && r.err == "" {
		r.err = err.Error()
	}
	return r
}

func (s *session) env() []string {
	var out []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "KUBECONFIG=") && !strings.HasPrefix(e, "HOME=") && !strings.HasPrefix(e, "PATH=") {
			out = append(out, e)
		}
	}
	return append(out, "HOME="+s.home, "PATH="+bin+":"+os.Getenv("PATH"))
}

// does runs a line that has to succeed, and expects words in what it prints.
func (s *session) does(t *testing.T, line string, words ...string) string {
	t.Helper()
	begun := time.Now()
	r := s.run(line)
	t.Logf("%5.1fs $ %s", time.Since(begun).Seconds(), firstLine(line))
	if r.code != 0 {
		t.Fatalf("$ %s\nexit code %d\n%s%s", line, r.code, r.out, r.err)
	}
	for _, want := range words {
		if !strings.Contains(r.out+r.err, want) {
			t.Errorf("$ %s\ndoes not say %q:\n%s%s", line, want, r.out, r.err)
		}
	}
	return r.out
}

// prints runs a line until the table that it prints has a row.
func (s *session) prints(t *testing.T, line string, want row) {
	t.Helper()
	eventually(t, func() error {
		r := s.run(line)
		if r.code != 0 {
			return fmt.Errorf("$ %s\n%s%s", line, r.out, r.err)
		}
		for _, got := range table(r.out) {
			if got.has(want) {
				return nil
			}
		}
		return fmt.Errorf("$ %s\nno row %v in\n%s%s", line, want, r.out, r.err)
	})
}

// lacks runs a line until the table that it prints has no such row.
func (s *session) lacks(t *testing.T, line string, unwanted row) {
	t.Helper()
	eventually(t, func() error {
		r := s.run(line)
		if r.code != 0 {
			return fmt.Errorf("$ %s\n%s%s", line, r.out, r.err)
		}
		for _, got := range table(r.out) {
			if got.has(unwanted) {
				return fmt.Errorf("$ %s\nrow %v in\n%s", line, unwanted, r.out)
			}
		}
		return nil
	})
}

func (r row) has(want row) bool {
	for column, cell := range want {
		if r[column] != cell {
			return false
		}
	}
	return true
}

func firstLine(text string) string {
	line, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more && rest != "" {
		line += " …"
	}
	return line
}

// file writes a file into the home of the user.
func (s *session) file(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.home, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// kindConfig is a configuration of a cluster, on the nodes that the tests were given.
func kindConfig(t *testing.T, c kindCluster) string {
	t.Helper()
	cfg := map[string]any{}
	if path := os.Getenv("KIND_CONFIG"); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, &cfg); err != nil {
			t.Fatal(err)
		}
	}
	networking, _ := cfg["networking"].(map[string]any)
	if networking == nil {
		networking = map[string]any{}
	}
	networking["podSubnet"], networking["serviceSubnet"] = c.pods, c.services
	cfg["kind"], cfg["apiVersion"], cfg["name"], cfg["networking"] = "Cluster", "kind.x-k8s.io/v1alpha4", c.name, networking
	node := map[string]any{"role": "control-plane"}
	if c.host {
		node["extraPortMappings"] = []map[string]any{{"containerPort": chartPort, "hostPort": chartPort, "protocol": "tcp"}}
	}
	cfg["nodes"] = []map[string]any{node}
	data, err := yaml.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// kindCluster is the name of a kind cluster, and the addresses of its pods and services.
type kindCluster struct {
	name, pods, services string
	// host reports that it gets the image of the control plane, and that the machine has its port for the chart.
	host bool
}

// clusters makes kind clusters for the user beside one another, and has them removed at the end. While one works on the tests, E2E_KEEP=1 keeps them for the next run.
func (s *session) clusters(t *testing.T, all ...kindCluster) {
	t.Helper()
	keep := os.Getenv("E2E_KEEP") != ""
	image := ""
	if node := os.Getenv("KIND_NODE_IMAGE"); node != "" {
		image = " --image " + node
	}
	var create []string
	for _, c := range all {
		s.file(t, c.name+"-kind.yaml", kindConfig(t, c))
		if !keep {
			t.Cleanup(func() { s.run("kind delete cluster --name " + c.name) })
		}
		if keep && s.run("kind export kubeconfig --name "+c.name).code == 0 {
			continue
		}
		line := "kind create cluster --config " + c.name + "-kind.yaml" + image
		if c.host {
			line += " && kind load image-archive " + os.Getenv("E2E_IMAGE") + " --name " + c.name
		}
		create = append(create, "{ "+line+"; } & jobs=\"$jobs $!\"\n")
	}
	s.does(t, "jobs=\n"+strings.Join(create, "")+"for job in $jobs; do wait $job || exit; done")
	for _, c := range all {
		// The control plane is in a container beside: 127.0.0.1 is not the cluster there.
		s.does(t, "kubectl config set-cluster kind-"+c.name+" --server=https://$(docker inspect -f '{{.NetworkSettings.Networks.kind.IPAddress}}' "+c.name+"-control-plane):6443")
	}
}

// images reads which images of Kubernetes the nodes of a host have: nothing can be downloaded.
func (s *session) images(t *testing.T, host string) {
	t.Helper()
	s.kubeTag = strings.TrimSpace(s.does(t, "docker exec "+host+"-control-plane cat /kind/version"))
	s.etcdImage = strings.TrimSpace(s.does(t, "docker exec "+host+"-control-plane ctr -n k8s.io images ls -q | grep -m1 '/etcd:'"))
}

// init is the command that installs a control plane on the host.
func (s *session) init(flags string) string {
	return fmt.Sprintf("kubectl karmada init --context=kind-cluster01 --kube-image-tag=%s --etcd-image=%s --karmada-data=%s %s", s.kubeTag, s.etcdImage, s.data, flags)
}

// at is the flag that names the control plane.
func (s *session) at() string { return "--kubeconfig " + s.config }

// limit is how long an error may take to say its cause.
const limit = time.Minute

// says runs a line that has to fail, within the limit, with words in what it says.
func (s *session) says(t *testing.T, line string, words ...string) {
	t.Helper()
	begun := time.Now()
	r := s.run(line)
	took := time.Since(begun)
	if r.code == 0 {
		t.Fatalf("$ %s\nsucceeded:\n%s%s", line, r.out, r.err)
	}
	t.Logf("%5.1fs $ %s\n%s", took.Seconds(), line, lastLine(r.err))
	if took > limit {
		t.Errorf("$ %s\nfailed only after %s", line, took)
	}
	for _, want := range words {
		if !strings.Contains(r.err, want) {
			t.Errorf("$ %s\ndoes not say %q:\n%s", line, want, r.err)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return cmp.Or(lines[len(lines)-1], "(nothing)")
}
