//go:build integration

// Covers pkg/controlplane/controllers/execution.

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
)

const memberNginx = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: default, name: nginx, labels: {app: nginx}},
  spec: {replicas: 2, selector: {matchLabels: {app: nginx}}, template: {metadata: {labels: {app: nginx}}, spec: {containers: [{name: c, image: nginx}]}}}}`

// TestMemberSide walks one federation through what can happen to objects in a
// member; the steps build on each other.
func TestMemberSide(t *testing.T) {
	t.Parallel()
	f := newMemberFederation(t)
	t.Logf("ready after %s", f.join(t))
	for _, step := range []struct {
		name string
		run  func(*testing.T, *memberFederation)
	}{
		{"the status of the cluster is complete", memberClusterStatus},
		{"a Deployment is created and its status is aggregated", memberDeployment},
		{"a restart writes nothing", memberRestart},
		{"a change is applied to the member", memberChange},
		{"drift is reverted", memberDrift},
		{"a deleted object is created again", memberRecreate},
		{"an object that existed before is not changed without overwrite", memberConflict},
		{"fields that only the member writes stay, for a kind without a status subresource", memberPlainStatus},
		{"suspension stops writes", memberSuspension},
		{"objects remain with preserveResourcesOnDeletion", memberPreserve},
		{"namespaces remain with what is in them", memberNamespaces},
		{"the deletion of the Work deletes the object", memberDeletion},
		{"a member that was unavailable is reconciled when it is back", memberAway},
		{"a member that was restored from an older copy is compared again", memberRestored},
		{"a cluster is removed", memberLeave},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, f) }) {
			return
		}
	}
}

func (f *memberFederation) work(ctx context.Context, work *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	out := &workv1alpha1.Work{}
	return out, f.client.Get(ctx, client.ObjectKeyFromObject(work), out)
}

// nginxWork finds the Work of the Deployment.
func (f *memberFederation) nginxWork(t *testing.T) *workv1alpha1.Work {
	t.Helper()
	var works workv1alpha1.WorkList
	must(t, f.client.List(t.Context(), &works))
	for i := range works.Items {
		if strings.HasPrefix(works.Items[i].Name, "nginx-") {
			return &works.Items[i]
		}
	}
	t.Fatal("no work")
	return nil
}

func memberClusterStatus(t *testing.T, f *memberFederation) {
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.client.Get(ctx, client.ObjectKey{Name: clusterName}, c); err != nil {
			return err
		}
		switch {
		case !meta.IsStatusConditionTrue(c.Status.Conditions, "CompleteAPIEnablements"), c.Status.KubernetesVersion == "":
			return fmt.Errorf("status: %v %q", c.Status.Conditions, c.Status.KubernetesVersion)
		case c.Status.NodeSummary == nil || c.Status.NodeSummary.TotalNum != 2 || c.Status.NodeSummary.ReadyNum != 2:
			return fmt.Errorf("nodes: %v", c.Status.NodeSummary)
		case c.Status.ResourceSummary.Allocatable.Cpu().IsZero():
			return fmt.Errorf("resources: %v", c.Status.ResourceSummary)
		case len(c.Spec.Taints) != 0:
			return fmt.Errorf("taints: %v", c.Spec.Taints)
		case len(c.Finalizers) != 1:
			return fmt.Errorf("finalizers: %v", c.Finalizers)
		}
		return nil
	})
}

func memberDeployment(t *testing.T, f *memberFederation) {
	_, work := f.propagate(t, memberNginx)
	began := time.Now()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "nginx"}, d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != 2 {
			return fmt.Errorf("template status: %+v", d.Status)
		}
		b := &workv1alpha2.ResourceBinding{}
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "nginx-deployment"}, b); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) || b.Status.AggregatedStatus[0].Health != "Healthy" {
			return fmt.Errorf("binding status: %+v", b.Status)
		}
		return nil
	})
	t.Logf("complete after %s", time.Since(began))
	got, err := f.work(t.Context(), work)
	must(t, err)
	if !meta.IsStatusConditionTrue(got.Status.Conditions, "Applied") || !meta.IsStatusConditionTrue(got.Status.Conditions, "Dispatching") {
		t.Errorf("work status: %+v", got.Status)
	}
	events := f.events(t)
	for want, n := range map[string]int{"SyncSucceed Deployment": 1} {
		if events[want] != n {
			t.Errorf("events %q: %d, want %d, of %v", want, events[want], n, events)
		}
	}
	t.Logf("managed writes of work: %s", got.ResourceVersion)
}

// events counts the events of the control plane by reason and kind. They are
// written a little later than they happen.
func (f *memberFederation) events(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		var list corev1.EventList
		if err := f.client.List(ctx, &list); err != nil {
			return err
		}
		clear(out)
		for i := range list.Items {
			out[list.Items[i].Reason+" "+list.Items[i].InvolvedObject.Kind] += max(1, int(list.Items[i].Count))
		}
		if out["SyncSucceed Deployment"] == 0 {
			return fmt.Errorf("events: %v", out)
		}
		return nil
	})
	return out
}

// delivers propagates one more Deployment and waits until its status is back: what was queued before it has been handled.
func (f *memberFederation) delivers(t *testing.T, name string) {
	t.Helper()
	template, _ := f.propagate(t, strings.Replace(strings.ReplaceAll(memberNginx, "nginx", name), "replicas: 2", "replicas: 1", 1))
	testenv.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(template), d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != 1 {
			return fmt.Errorf("the status of %s is %+v", name, d.Status)
		}
		return nil
	})
}

func memberRestart(t *testing.T, f *memberFederation) {
	before := f.atRest(t)
	f.halt(t)
	must(t, <-f.stopped)
	f.start(t)
	f.delivers(t, "afterwards")
	after := f.versions(t)
	for key, version := range before {
		if after[key] != version {
			t.Errorf("%s was written: %s, now %s", key, version, after[key])
		}
	}
}

// atRest returns the versions when nothing has been written for 3 seconds.
func (f *memberFederation) atRest(t *testing.T) map[string]string {
	t.Helper()
	last, since := f.versions(t), time.Now()
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		if now := f.versions(t); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if time.Since(since) < 3*time.Second {
			return errors.New("objects are being written")
		}
		return nil
	})
	return last
}

// versions returns the resource versions of what the controllers may write.
func (f *memberFederation) versions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for where, c := range map[string]client.Client{"plane": f.client, "member": f.there} {
		lists := []client.ObjectList{&appsv1.DeploymentList{}}
		if where == "plane" {
			lists = append(lists, &workv1alpha1.WorkList{}, &workv1alpha2.ResourceBindingList{})
		}
		for _, list := range lists {
			must(t, c.List(t.Context(), list))
			must(t, meta.EachListItem(list, func(obj runtimeObject) error {
				m, err := meta.Accessor(obj)
				out[fmt.Sprintf("%s %T %s", where, obj, m.GetName())] = m.GetResourceVersion()
				return err
			}))
		}
	}
	return out
}

func memberChange(t *testing.T, f *memberFederation) {
	work := f.nginxWork(t)
	template := object(t, memberNginx)
	must(t, f.client.Get(t.Context(), client.ObjectKeyFromObject(template), template))
	must(t, setReplicas(template, 3))
	must(t, planetest.Change(t.Context(), f.client, work, func() { f.fill(t, work, template, "abort") }))
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		w, err := f.work(ctx, work)
		if err != nil {
			return err
		}
		if len(w.Status.ManifestStatuses) != 1 || !strings.Contains(string(w.Status.ManifestStatuses[0].Status.Raw), `"readyReplicas":3`) {
			return fmt.Errorf("status: %+v", w.Status)
		}
		return nil
	})
}

// inMember waits for a state of the Deployment in the member.
func (f *memberFederation) inMember(t *testing.T, check func(*appsv1.Deployment) error) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := f.there.Get(ctx, client.ObjectKey{Namespace: "default", Name: "nginx"}, d); err != nil {
			return err
		}
		return check(d)
	})
}

func memberDrift(t *testing.T, f *memberFederation) {
	d := &appsv1.Deployment{}
	must(t, f.there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "nginx"}, d))
	patched := d.DeepCopy()
	patched.Spec.Template.Spec.Containers[0].Image = "other"
	patched.Labels["app"] = "other"
	patched.Labels["mine"] = "stays"
	must(t, f.there.Patch(t.Context(), patched, client.MergeFrom(d)))
	f.inMember(t, func(d *appsv1.Deployment) error {
		if d.Spec.Template.Spec.Containers[0].Image != "nginx" || d.Labels["app"] != "nginx" {
			return fmt.Errorf("image %s, labels %v", d.Spec.Template.Spec.Containers[0].Image, d.Labels)
		}
		if d.Labels["mine"] != "stays" {
			t.Errorf("labels %v", d.Labels)
		}
		return nil
	})
}

func memberRecreate(t *testing.T, f *memberFederation) {
	d := &appsv1.Deployment{}
	must(t, f.there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "nginx"}, d))
	must(t, f.there.Delete(t.Context(), d.DeepCopy()))
	f.inMember(t, func(now *appsv1.Deployment) error {
		if now.UID == d.UID || now.Status.ReadyReplicas != 3 {
			return errors.New("not there again")
		}
		return nil
	})
}

func memberConflict(t *testing.T, f *memberFederation) {
	const text = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: taken}, data: {from: plane}}`
	must(t, f.there.Create(t.Context(), object(t, strings.Replace(text, "plane", "member", 1))))
	template, work := f.propagate(t, text)
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		w, err := f.work(ctx, work)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, "Applied")
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "(0/1): resource(kind=ConfigMap, default/taken) already exists in the cluster m1") {
			return fmt.Errorf("applied: %v", c)
		}
		return nil
	})
	must(t, planetest.Change(t.Context(), f.client, work, func() { f.fill(t, work, template, "overwrite") }))
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		cm := &corev1.ConfigMap{}
		if err := f.there.Get(ctx, client.ObjectKey{Namespace: "default", Name: "taken"}, cm); err != nil {
			return err
		}
		w, err := f.work(ctx, work)
		if err != nil || cm.Data["from"] != "plane" || !meta.IsStatusConditionTrue(w.Status.Conditions, "Applied") {
			return errors.Join(fmt.Errorf("data %v, %v", cm.Data, w.Status), err)
		}
		return nil
	})
}

func memberPlainStatus(t *testing.T, f *memberFederation) {
	const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: applications.example.io},
  spec: {group: example.io, scope: Namespaced, names: {plural: applications, kind: Application},
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	text := func(fields string) string {
		return "{apiVersion: example.io/v1, kind: Application, metadata: {namespace: default, name: app}, " + fields + "}"
	}
	for _, c := range []client.Client{f.client, f.there} {
		must(t, c.Create(t.Context(), object(t, definition)))
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			return c.List(ctx, &unstructured.UnstructuredList{Object: object(t, "{apiVersion: example.io/v1, kind: ApplicationList}").Object})
		})
	}
	inMember := func(check func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
		t.Helper()
		obj := object(t, text("spec: {}"))
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			if err := f.there.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
			if !check(obj) {
				return fmt.Errorf("in the member: %v", obj.Object)
			}
			return nil
		})
		return obj
	}
	hasRevision := func(n int64) func(*unstructured.Unstructured) bool {
		return func(obj *unstructured.Unstructured) bool {
			spec, _ := obj.Object["spec"].(map[string]any)
			return spec["revision"] == n
		}
	}
	keeps := func(obj *unstructured.Unstructured) {
		t.Helper()
		if obj.Object["status"] == nil || obj.Object["operation"] == nil {
			t.Errorf("what the member wrote is gone: %v", obj.Object)
		}
	}
	_, work := f.propagate(t, text("spec: {revision: 1}, info: {a: b}"))
	obj := inMember(hasRevision(1))
	obj.Object["status"], obj.Object["operation"] = map[string]any{"health": "Healthy"}, map[string]any{"sync": "a"}
	must(t, f.there.Update(t.Context(), obj))
	set := func(fields string) {
		template := object(t, text(fields))
		must(t, planetest.Change(t.Context(), f.client, work, func() { f.fill(t, work, template, "abort") }))
	}
	set("spec: {revision: 2}, info: {a: b}")
	keeps(inMember(hasRevision(2)))
	f.halt(t)
	must(t, <-f.stopped)
	set("spec: {revision: 3}")
	f.start(t)
	if obj = inMember(hasRevision(3)); obj.Object["info"] != nil {
		t.Errorf("a field that the template has no more stays: %v", obj.Object)
	}
	keeps(obj)
	f.halt(t)
	must(t, <-f.stopped)
	f.start(t)
	f.delivers(t, "next")
	if now := inMember(hasRevision(3)); now.GetResourceVersion() != obj.GetResourceVersion() {
		t.Error("a restart writes the object")
	}
}

func memberSuspension(t *testing.T, f *memberFederation) {
	_, work := f.propagate(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: held}, data: {a: b}}`,
		func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) })
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		w, err := f.work(ctx, work)
		if err != nil || !meta.IsStatusConditionFalse(w.Status.Conditions, "Dispatching") {
			return errors.Join(fmt.Errorf("status %v", w.Status), err)
		}
		return nil
	})
	if err := f.there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "held"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("in the member: %v", err)
	}
	must(t, planetest.Change(t.Context(), f.client, work, func() { work.Spec.SuspendDispatching = new(false) }))
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		return f.there.Get(ctx, client.ObjectKey{Namespace: "default", Name: "held"}, &corev1.ConfigMap{})
	})
}

func (f *memberFederation) deleteWork(t *testing.T, work *workv1alpha1.Work) {
	t.Helper()
	must(t, f.client.Delete(t.Context(), work))
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		if _, err := f.work(ctx, work); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the work is there"), err)
		}
		return nil
	})
}

func memberPreserve(t *testing.T, f *memberFederation) {
	_, work := f.propagate(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: kept}, data: {a: b}}`,
		func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = new(true) })
	cm := &corev1.ConfigMap{}
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		return f.there.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kept"}, cm)
	})
	f.deleteWork(t, work)
	must(t, f.there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kept"}, cm))
	if len(cm.Labels) != 0 || len(cm.Annotations) != 0 {
		t.Errorf("left behind: %v %v", cm.Labels, cm.Annotations)
	}
}

// memberNamespaces deletes the Works of namespaces and of what is in them in one go.
func memberNamespaces(t *testing.T, f *memberFederation) {
	for name, stays := range map[string]bool{"vacant": false, "preserved": true, "foreign": true} {
		ns := object(t, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name))
		must(t, f.client.Create(t.Context(), ns))
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-" + clusterName, Name: "namespace-" + name, Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
		}}
		f.fill(t, work, ns, "abort")
		must(t, f.client.Create(t.Context(), work))
		_, in := f.propagate(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: ours}, data: {a: b}}`, name),
			func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = new(name == "preserved") })
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			return f.there.Get(ctx, client.ObjectKey{Namespace: name, Name: "ours"}, &corev1.ConfigMap{})
		})
		if name == "foreign" {
			must(t, f.there.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "theirs"}}))
		}
		must(t, f.client.DeleteAllOf(t.Context(), &workv1alpha2.ResourceBinding{}, client.InNamespace(name)))
		must(t, f.client.Delete(t.Context(), in.DeepCopy()))
		f.deleteWork(t, work)
		there := &corev1.Namespace{}
		err := f.there.Get(t.Context(), client.ObjectKey{Name: name}, there)
		if stays && (err != nil || there.DeletionTimestamp != nil || there.Labels[workv1alpha2.ManagedByKarmadaLabel] != "") {
			t.Errorf("%s: %+v, %v", name, there.ObjectMeta, err)
		} else if !stays && err == nil && there.DeletionTimestamp == nil {
			t.Errorf("%s stays", name)
		}
		if err := f.there.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "ours"}, &corev1.ConfigMap{}); (err == nil) != (name == "preserved") {
			t.Errorf("%s: its object: %v", name, err)
		}
	}
}

func memberDeletion(t *testing.T, f *memberFederation) {
	f.deleteWork(t, f.nginxWork(t))
	if err := f.there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "nginx"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("in the member: %v", err)
	}
}

func memberAway(t *testing.T, f *memberFederation) {
	f.member.Kill(t)
	began := time.Now()
	f.waitReady(t, metav1.ConditionFalse, time.Minute)
	t.Logf("not ready after %s", time.Since(began))
	_, work := f.propagate(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: late}, data: {a: b}}`)
	f.member.Restart(t)
	began = time.Now()
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		w, err := f.work(ctx, work)
		if err != nil || !meta.IsStatusConditionTrue(w.Status.Conditions, "Applied") {
			return errors.Join(fmt.Errorf("status %v", w.Status), err)
		}
		return nil
	})
	t.Logf("caught up after %s", time.Since(began))
	must(t, f.there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "late"}, &corev1.ConfigMap{}))
}

// memberRestored has a member go back to a copy of its data, while the cluster stays Ready and
// after it became not Ready, and changes Works meanwhile.
func memberRestored(t *testing.T, f *memberFederation) {
	for i, notReady := range []bool{false, true} {
		name := func(kind string) string { return fmt.Sprintf("%s-%d", kind, i) }
		text := func(name, value string) string {
			return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: %s}, data: {k: %s}}`, name, value)
		}
		set := func(work *workv1alpha1.Work, value string) {
			template := object(t, text(strings.TrimSuffix(work.Name, work.Name[strings.LastIndex(work.Name, "-"):]), value))
			testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
				w, err := f.work(ctx, work)
				if err != nil {
					return err
				}
				f.fill(t, w, template, "abort")
				return f.client.Update(ctx, w)
			})
		}
		has := func(name, value string) {
			testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
				cm := &corev1.ConfigMap{}
				if err := f.there.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, cm); err != nil {
					return err
				}
				if cm.Data["k"] != value {
					return fmt.Errorf("%s is %q, not %q", name, cm.Data["k"], value)
				}
				return nil
			})
		}
		_, old := f.propagate(t, text(name("old"), "one"))
		_, late := f.propagate(t, text(name("late"), "one"))
		has(name("old"), "one")
		has(name("late"), "one")
		f.member.Stop(t)
		older := filepath.Join(t.TempDir(), "older")
		must(t, os.CopyFS(older, os.DirFS(f.member.DataDir)))
		f.member.Restart(t)
		set(old, "two")
		f.propagate(t, text(name("missing"), "one"))
		has(name("old"), "two")
		has(name("missing"), "one")
		before := f.wentBack.Load()
		f.member.Kill(t)
		if notReady {
			f.waitReady(t, metav1.ConditionFalse, time.Minute)
		}
		set(late, "two")
		must(t, os.RemoveAll(f.member.DataDir))
		must(t, os.CopyFS(f.member.DataDir, os.DirFS(older)))
		f.member.Restart(t)
		has(name("old"), "two")
		has(name("missing"), "one")
		has(name("late"), "two")
		testenv.Eventually(t, time.Minute, func(context.Context) error {
			if f.wentBack.Load() == before {
				return fmt.Errorf("the restore was not reported (not ready: %t)", notReady)
			}
			return nil
		})
	}
}

func memberLeave(t *testing.T, f *memberFederation) {
	// The bindings stay, as the scheduler that moves them is not here.
	must(t, f.client.DeleteAllOf(t.Context(), &workv1alpha2.ResourceBinding{}, client.InNamespace("default")))
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}
	must(t, f.client.Delete(t.Context(), c))
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		if err := f.client.Get(ctx, client.ObjectKeyFromObject(c), c); !apierrors.IsNotFound(err) {
			return fmt.Errorf("cluster: %v, %w", c.Finalizers, err)
		}
		return nil
	})
	var left corev1.ConfigMapList
	must(t, f.there.List(t.Context(), &left, client.MatchingLabels{"karmada.io/managed": "true"}))
	if len(left.Items) != 0 {
		t.Errorf("left behind: %d", len(left.Items))
	}
}
