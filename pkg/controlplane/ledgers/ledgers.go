// Package ledgers stores the ledgers of quotas: one ConfigMap for each namespace, in karmada-system, where users of the
// namespace cannot change it.
package ledgers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

const (
	prefix = "karmada-quota-"
	key    = "ledger"
)

// Stored is a ledger as the API server has it.
type Stored struct {
	quota.Ledger
	// Version is the resource version, empty if there is none yet.
	Version string
	// Counted is false if there is no ledger, or one that cannot be decoded: the bindings have to be counted.
	Counted bool
}

// Copy returns a copy whose reservations can be changed.
func (s *Stored) Copy() *Stored {
	out := *s
	out.Reservations = append([]quota.Reservation(nil), s.Reservations...)
	return &out
}

// Ledgers reads and writes ledgers.
type Ledgers struct {
	// Live reads from the API server.
	Live client.Reader
	// Writer writes to it.
	Writer client.Writer
}

// Get returns the ledger of a namespace.
func (l *Ledgers) Get(ctx context.Context, namespace string) (*Stored, error) {
	object := object(namespace)
	err := l.Live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return &Stored{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ledger of namespace %s: %w", namespace, err)
	}
	out := &Stored{Version: object.ResourceVersion}
	if out.Counted = json.Unmarshal([]byte(object.Data[key]), &out.Ledger) == nil; !out.Counted {
		out.Ledger = Stored{}.Ledger // part of it may have been decoded
	}
	return out, nil
}

// Put stores a ledger if it is still the version that was read. Otherwise it returns a conflict.
func (l *Ledgers) Put(ctx context.Context, namespace string, s *Stored) error {
	data, err := json.Marshal(&s.Ledger)
	if err != nil {
		return fmt.Errorf("encoding the ledger of namespace %s: %w", namespace, err)
	}
	object := object(namespace)
	object.Data = map[string]string{key: string(data)}
	object.ResourceVersion = s.Version
	if s.Version == "" {
		err = l.Writer.Create(ctx, object)
	} else {
		err = l.Writer.Update(ctx, object)
	}
	if err != nil {
		return fmt.Errorf("writing the ledger of namespace %s: %w", namespace, err)
	}
	s.Version, s.Counted = object.ResourceVersion, true
	return nil
}

// Conflict reports whether another client changed the ledger meanwhile.
func Conflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// Delete deletes the ledger of a namespace.
func (l *Ledgers) Delete(ctx context.Context, namespace string) error {
	if err := l.Writer.Delete(ctx, object(namespace)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the ledger of namespace %s: %w", namespace, err)
	}
	return nil
}

// Namespaces returns the namespaces that have a ledger.
func (l *Ledgers) Namespaces(ctx context.Context) ([]string, error) {
	list := &corev1.ConfigMapList{}
	err := l.Live.List(ctx, list, client.InNamespace(clusterv1alpha1.NamespaceKarmadaSystem), client.MatchingLabels(names.SystemLabels()))
	if err != nil {
		return nil, fmt.Errorf("listing the ledgers: %w", err)
	}
	var out []string
	for i := range list.Items {
		if namespace, ok := strings.CutPrefix(list.Items[i].Name, prefix); ok {
			out = append(out, namespace)
		}
	}
	return out, nil
}

// Bindings returns what the bindings of a namespace use.
func Bindings(ctx context.Context, reader client.Reader, namespace string) (map[string]quota.Stored, error) {
	list := &workv1alpha2.ResourceBindingList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the bindings of namespace %s: %w", namespace, err)
	}
	out := make(map[string]quota.Stored, len(list.Items))
	for i := range list.Items {
		b := &list.Items[i]
		out[b.Name] = quota.Stored{UID: b.UID, Version: b.ResourceVersion, Usage: quota.Usage(&b.Spec)}
	}
	return out, nil
}

func object(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: prefix + namespace, Labels: names.SystemLabels(),
	}}
}
