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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
)

const memberNginx = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: default, name: nginx, labels: {app: nginx}},
  spec: {replicas: 1, selector: {matchLabels: {app: nginx}}, template: {metadata: {labels: {app: nginx}}, spec: {containers: [{name: c, image: nginx}]}}}}`

func TestMemberSide(t *testing.T) {
	t.Parallel()
	f := newMemberFederation(t)
	t.Logf("ready after %s", f.join(t))
	t.Run("a restart writes nothing", f.restart)
	t.Run("namespaces remain with what is in them", f.namespaces)
	t.Run("a member that was restored from an older copy is compared again", f.restored)
}

func (f *memberFederation) work(ctx context.Context, work *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	out := &workv1alpha1.Work{}
	return out, f.client.Get(ctx, client.ObjectKeyFromObject(work), out)
}

// delivers propagates one more Deployment and waits until its status is back: what was queued before it has been handled.
func (f *memberFederation) delivers(t *testing.T, name string) {
	t.Helper()
	template, _ := f.propagate(t, strings.ReplaceAll(memberNginx, "nginx", name))
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

func (f *memberFederation) restart(t *testing.T) {
	f.delivers(t, "nginx")
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

// namespaces deletes the Works of namespaces and of what is in them in one go.
func (f *memberFederation) namespaces(t *testing.T) {
	for name, stays := range map[string]bool{"vacant": false, "preserved": true, "foreign": true} {
		ns := object(t, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name))
		must(t, f.client.Create(t.Context(), ns))
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-" + clusterName, Name: "namespace-" + name, Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer},
		}}
		f.fill(t, work, ns)
		must(t, f.client.Create(t.Context(), work))
		_, in := f.propagate(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: ours}, data: {a: b}}`, name))
		must(t, planetest.Change(t.Context(), f.client, in, func() { in.Spec.PreserveResourcesOnDeletion = new(name == "preserved") }))
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			return f.there.Get(ctx, client.ObjectKey{Namespace: name, Name: "ours"}, &corev1.ConfigMap{})
		})
		if name == "foreign" {
			must(t, f.there.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "theirs"}}))
		}
		must(t, f.client.DeleteAllOf(t.Context(), &workv1alpha2.ResourceBinding{}, client.InNamespace(name)))
		must(t, f.client.Delete(t.Context(), in.DeepCopy()))
		must(t, f.client.Delete(t.Context(), work))
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			if _, err := f.work(ctx, work); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("the work is there"), err)
			}
			return nil
		})
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

// restored has a member go back to a copy of its data, while the cluster stays Ready and
// after it became not Ready, and changes Works meanwhile.
func (f *memberFederation) restored(t *testing.T) {
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
				f.fill(t, w, template)
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
		before := f.incarnation(t)
		f.member.Kill(t)
		if notReady {
			f.waitReady(t, metav1.ConditionFalse)
		}
		set(late, "two")
		must(t, os.RemoveAll(f.member.DataDir))
		must(t, os.CopyFS(f.member.DataDir, os.DirFS(older)))
		f.member.Restart(t)
		has(name("old"), "two")
		has(name("missing"), "one")
		has(name("late"), "two")
		testenv.Eventually(t, time.Minute, func(context.Context) error {
			if f.incarnation(t) == before {
				return fmt.Errorf("the restore was not reported (not ready: %t)", notReady)
			}
			return nil
		})
	}
}
