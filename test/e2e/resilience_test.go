package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// up brings back what is dead.
func up(t *testing.T) {
	t.Helper()
	must(t, "local", "up", "--name", federationName, "--dir", stateDir)
}

// l
func TestCrash_ControlPlaneLosesNothing(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, policyFor("all", "{apiVersion: apps/v1, kind: Deployment}", to("member1", "member2")))
	n := under.many()
	var manifests []string
	for i := range n {
		manifests = append(manifests, deployment(fmt.Sprintf("web-%03d", i), 1))
	}
	apply(t, ns, manifests...)
	under.crashControlPlane(t)
	up(t)
	for _, cluster := range []string{"member1", "member2"} {
		eventually(t, func() error {
			out, err := value(cluster, ns, "deploy", "{range .items[*]}{.metadata.name} {.metadata.uid} {.status.readyReplicas}{\"\\n\"}{end}")
			if err != nil {
				return err
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if len(lines) != n || strings.Count(out, " 1\n")+strings.Count(out+"\n", " 1\n\n") < n-1 {
				return fmt.Errorf("%s has %d ready Deployments, not %d", cluster, strings.Count(out+"\n", " 1\n"), n)
			}
			return nil
		})
		// Nothing was made twice: every object has one ReplicaSet.
		out, err := value(cluster, ns, "rs", "{.items[*].metadata.name}")
		if err != nil {
			t.Fatal(err)
		}
		if got := len(strings.Fields(out)); got != n {
			t.Errorf("%s has %d ReplicaSets, not %d", cluster, got, n)
		}
	}
}

// m
func TestCrash_UnreachableMemberDelaysNoOther(t *testing.T) {
	ns := namespace(t)
	under.crashMember(t, "member2")
	t.Cleanup(func() { ctl("", "local", "up", "--name", federationName, "--dir", stateDir) })
	eventually(t, func() error {
		if shows(row{"NAME": "member2", "READY": "True"}, "get", "clusters")() == nil {
			return fmt.Errorf("member2 is still Ready")
		}
		return nil
	})
	apply(t, ns, deployment("here", 1), policy("here", to("member1")))
	eventually(t, is("member1", ns, "deploy/here", "{.status.readyReplicas}", "1"))
	r := ctl("", "get", "deploy", "-n", ns)
	if r.code != 1 || !strings.Contains(r.err, "member2") || !strings.Contains(r.out, "here") {
		t.Errorf("get with a dead member: exit code %d\n%s%s", r.code, r.out, r.err)
	}

	apply(t, ns, deployment("there", 1), policy("there", to("member2")+`
clusterTolerations: [{operator: Exists}]`))
	eventually(t, explained(ns, "deployment/there", "cluster member2 is not Ready: "))
	up(t)
	eventually(t, shows(row{"NAME": "member2", "READY": "True"}, "get", "clusters"))
	eventually(t, is("member2", ns, "deploy/there", "{.status.readyReplicas}", "1"))
}

// A Work that somebody else than its binding deletes comes back. In Push mode its object stays as it is; an agent, which does not
// see bindings, makes it again.
func TestWorks_DeletedByHandComeBack(t *testing.T) { inBothModes(t, worksDeletedByHandComeBack) }

func worksDeletedByHandComeBack(t *testing.T, name string) {
	ns := namespace(t)
	apply(t, ns, configMapNamed("kept"), policyFor("all", "{apiVersion: v1, kind: ConfigMap, name: kept}", to(name)))
	var uid string
	eventually(t, func() (err error) {
		uid, err = value(name, ns, "cm/kept", "{.metadata.uid}")
		return err
	})
	id, err := value("", ns, "rb/kept-configmap", `{.metadata.labels.resourcebinding\.karmada\.io/permanent-id}`)
	if err != nil || id == "" {
		t.Fatalf("id %q, %v", id, err)
	}
	selector := "resourcebinding.karmada.io/permanent-id=" + id
	works := func(path string) string {
		return ctl("", "get", "works", "-n", "karmada-es-"+name, "-l", selector, "-o", "jsonpath={.items[*]"+path+"}").out
	}
	before := works(".metadata.uid")
	must(t, "delete", "works", "-n", "karmada-es-"+name, "-l", selector)
	eventually(t, func() error {
		if now := works(".metadata.uid"); now == "" || now == before {
			return fmt.Errorf("the Work is %q, it was %q", now, before)
		}
		if status := works(`.status.conditions[?(@.type=="Applied")].status`); status != "True" {
			return fmt.Errorf("the condition Applied is %q", status)
		}
		return nil
	})
	after, err := value(name, ns, "cm/kept", "{.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	if after != uid {
		t.Error("the object was deleted and made again")
	}
	must(t, "delete", "cm", "kept", "-n", ns)
	eventually(t, absent(name, ns, "cm/kept"))

	// So do those without a binding: the rights of users in the cluster.
	rights := func() []string {
		return slices.DeleteFunc(strings.Fields(must(t, "get", "works", "-n", "karmada-es-"+name, "-o", `jsonpath={range .items[*]}{.metadata.name}/{.metadata.uid}{"\n"}{end}`)),
			func(work string) bool { return !strings.HasPrefix(work, "karmada-impersonator-") })
	}
	had := rights()
	for _, work := range had {
		of, _, _ := strings.Cut(work, "/")
		must(t, "delete", "work", of, "-n", "karmada-es-"+name)
	}
	eventually(t, func() error {
		now := rights()
		if len(had) != 2 || len(now) != 2 || slices.ContainsFunc(now, func(work string) bool { return slices.Contains(had, work) }) {
			return fmt.Errorf("the Works are %q, they were %q", now, had)
		}
		if r := ctl("", "get", "namespace", ns, "-C", name); r.code != 0 {
			return errors.New(r.err)
		}
		return nil
	})
}
