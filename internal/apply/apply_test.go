package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestIncludes(t *testing.T) {
	type object = map[string]any
	live := object{
		"metadata": object{"name": "a", "labels": object{"mine": "1", "yours": "2"}, "uid": "x"},
		"spec":     object{"ports": []any{object{"port": int64(1), "protocol": "TCP"}}, "type": "ExternalName"},
	}
	for _, tc := range []struct {
		name string
		want object
		is   bool
	}{
		{"what is desired exists, with defaults and others' labels", object{"metadata": object{"labels": object{"mine": "1"}}, "spec": object{"ports": []any{object{"port": int64(1)}}}}, true},
		{"empty specifies nothing", object{"status": object{}, "rules": []any{}}, true},
		{"another value", object{"spec": object{"type": "ClusterIP"}}, false},
		{"a missing key", object{"metadata": object{"annotations": object{"a": "b"}}}, false},
		{"a shorter list", object{"spec": object{"ports": []any{}}}, false},
		{"a longer list", object{"spec": object{"ports": []any{object{"port": int64(1)}, object{"port": int64(2)}}}}, false},
		{"another type", object{"spec": "x"}, false},
	} {
		if got := includes(live, tc.want); got != tc.is {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

func TestApplier_WritesAtMostParallelObjectsAtATime(t *testing.T) {
	for name, tt := range map[string]struct{ parallel, want int }{
		"one at a time":   {1, 1},
		"three at a time": {3, 3},
		"the default":     {0, defaultParallel},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var active atomic.Int32
				c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
					Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
						active.Add(1)
						<-release
						return errors.New("refused")
					},
				})
				var objects []client.Object
				for i := range 20 {
					objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), Namespace: "default"}})
				}
				go func() {
					_, err := (&Applier{Client: c, Manager: "test", Parallel: tt.parallel}).Apply(t.Context(), objects...)
					if err == nil {
						t.Error("every object was refused, and there is no error")
					}
				}()
				synctest.Wait()
				if got := int(active.Load()); got != tt.want {
					t.Errorf("%d objects at a time, want %d", got, tt.want)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

func TestApplier_KeepsWhatAnotherCreated(t *testing.T) {
	configMap := func(name, data string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}, Data: map[string]string{"data": data}}
	}
	foreign := map[string]string{"foreign": "true"}
	c := fake.NewClientBuilder().WithObjects(configMap("kept", "old", foreign), configMap("changed", "old", nil), configMap("overtaken", "old", nil)).Build()
	overtaken := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, obj, opts...); err != nil || key.Name != "overtaken" {
				return err
			}
			return c.Update(ctx, configMap("overtaken", "another's", foreign)) // after it was read
		},
	})
	a := &Applier{Client: overtaken, Manager: "test", Keep: func(have client.Object) bool { return have.GetLabels()["foreign"] != "" }}
	changes, err := a.Apply(t.Context(), configMap("kept", "new", nil), configMap("changed", "new", nil), configMap("overtaken", "new", nil), configMap("new", "new", nil))
	if !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
	for i, want := range []struct {
		name, data string
		action     Action
	}{{"kept", "old", Unchanged}, {"changed", "new", Configured}, {"overtaken", "another's", ""}, {"new", "new", Created}} {
		got := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: want.name}, got); err != nil {
			t.Fatal(err)
		}
		if got.Data["data"] != want.data || changes[i].Action != want.action {
			t.Errorf("%s: %q, %q, want %q, %q", want.name, got.Data["data"], changes[i].Action, want.data, want.action)
		}
	}
}

// The type of a Secret that others made for a pair cannot be changed.
func TestApply_KeepsTheTypeOfASecretForAPair(t *testing.T) {
	for have, want := range map[corev1.SecretType]corev1.SecretType{corev1.SecretTypeTLS: "", corev1.SecretTypeOpaque: corev1.SecretTypeOpaque, corev1.SecretTypeServiceAccountToken: corev1.SecretTypeOpaque} {
		was := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Type: have, Data: map[string][]byte{"a": []byte("b")}}
		var sent any
		c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(was).Build(), interceptor.Funcs{Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			data, err := json.Marshal(o)
			content := map[string]any{}
			err = errors.Join(err, json.Unmarshal(data, &content))
			sent = content["type"]
			return err
		}})
		wanted := &corev1.Secret{ObjectMeta: was.ObjectMeta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": []byte("c")}}
		if _, err := (&Applier{Client: c, Manager: "m"}).Apply(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
		if text, _ := sent.(string); text != string(want) {
			t.Errorf("%s: type %q is sent, want %q", have, text, want)
		}
	}
}
