package why

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/locate"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/insight/explain"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// question is what a command asks.
type question struct {
	env    *env.Env
	access *env.Access
	// cluster is the member that has the object; empty for the control plane.
	cluster string
	args    []string
	reader  *snapshot.Reader
}

func newQuestion(ctx context.Context, e *env.Env, access *env.Access, o options, args []string) (*question, error) {
	c, err := access.UnlimitedClient(ctx)
	if err != nil {
		return nil, err
	}
	if o.cluster != "" {
		if _, err := access.ControlPlane.Cluster(ctx, o.cluster); err != nil {
			return nil, err
		}
	}
	q := &question{env: e, access: access, cluster: o.cluster, args: args}
	namespace, _, err := access.Namespace()
	if err != nil {
		return nil, err
	}
	q.reader = &snapshot.Reader{ControlPlane: c, Namespace: namespace, Deadline: o.Deadline, Now: e.Now, Member: q.member}
	return q, nil
}

// member returns a client for a member.
func (q *question) member(cluster string) (dynamic.Interface, error) {
	config, err := q.access.MemberAccess(cluster).ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// explain reads the object and computes the account.
func (q *question) explain(ctx context.Context) (*why.Account, error) {
	if q.cluster != "" {
		return q.explainInMember(ctx)
	}
	object, mapping, err := read(q.access, q.args)
	if err != nil {
		if account := q.gone(ctx, err); account != nil {
			return account, nil
		}
		if err := q.findInMember(ctx, err); err != nil {
			return nil, err
		}
		return q.explainInMember(ctx)
	}
	return explain.Object(ctx, q.reader, object, mapping, q.env.Name)
}

// gone explains an object that was deleted in the control plane, as reading it reports by err, and leaves clusters; nil for another one.
func (q *question) gone(ctx context.Context, err error) *why.Account {
	if !apierrors.IsNotFound(err) {
		return nil
	}
	kind, name := q.named()
	resource, namespace, err := locate.Resource(q.access, kind)
	if err != nil {
		return nil
	}
	mapper, err := q.access.ToRESTMapper()
	if err != nil {
		return nil
	}
	gvk, err := mapper.KindFor(resource)
	if err != nil {
		return nil
	}
	works := q.reader.Leaving(ctx, gvk.Kind, namespace, name)
	if len(works) == 0 {
		return nil
	}
	object := why.Object{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: name}
	return why.Gone(object, works, q.env.Now(), q.env.Name)
}

// maxOwners is the number of owners of an object that are followed.
const maxOwners = 5

// explainInMember explains an object of a member: from what it belongs to, back to the template of the control plane.
func (q *question) explainInMember(ctx context.Context) (*why.Account, error) {
	in := q.access.MemberAccess(q.cluster)
	object, _, err := read(in, q.args)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", q.cluster, err)
	}
	problem := ""
	if pod := (&corev1.Pod{}); object.GetKind() == "Pod" && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod) == nil {
		problem = why.PodProblem(pod)
	}
	var owned []*unstructured.Unstructured
	root := object
	for range maxOwners {
		owner := metav1.GetControllerOfNoCopy(root)
		if owner == nil {
			break
		}
		next, _, err := readNamed(in, object.GetNamespace(), owner)
		if err != nil {
			break // what cannot be read is not followed
		}
		owned, root = append(owned, next), next
	}
	var template *why.Account
	if manifest.Owned(root) {
		found, mapping, err := readNamed(q.access, root.GetNamespace(), &metav1.OwnerReference{APIVersion: root.GetAPIVersion(), Kind: root.GetKind(), Name: root.GetName()})
		if apierrors.IsNotFound(err) {
			of := why.Object{APIVersion: root.GetAPIVersion(), Kind: root.GetKind(), Namespace: root.GetNamespace(), Name: root.GetName()}
			out := why.InMember(q.cluster, object, owned, &why.Account{Object: of, Cause: why.NotRemoved, Next: q.env.Name + " why cluster " + q.cluster}, problem, q.env.Name)
			out.Answer += ", which the control plane does not have any more"
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the template of %s %s: %w", root.GetKind(), root.GetName(), err)
		}
		if template, err = explain.Object(ctx, q.reader, found, mapping, q.env.Name); err != nil {
			return nil, err
		}
	}
	return why.InMember(q.cluster, object, owned, template, problem, q.env.Name), nil
}

// readNamed reads an object by its kind.
func readNamed(access *env.Access, namespace string, o *metav1.OwnerReference) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return nil, nil, err
	}
	return readIn(access, namespace, []string{o.Kind + "." + gv.Version + "." + gv.Group, o.Name})
}

// read returns the object that the arguments name.
func read(access *env.Access, args []string) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	namespace, _, err := access.Namespace()
	if err != nil {
		return nil, nil, err
	}
	return readIn(access, namespace, args)
}

func readIn(access *env.Access, namespace string, args []string) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	infos, err := resource.NewBuilder(access).Unstructured().NamespaceParam(namespace).DefaultNamespace().ResourceTypeOrNameArgs(false, args...).Flatten().Do().Infos()
	if err != nil {
		return nil, nil, err
	}
	object, ok := infos[0].Object.(*unstructured.Unstructured)
	if !ok || len(infos) != 1 {
		return nil, nil, errors.New("name one object as TYPE NAME or TYPE/NAME")
	}
	return object, infos[0].Mapping, nil
}
