package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/status"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// flow is the chain of an account: the stages that all clusters share, and a lane for each cluster.
type flow struct {
	*why.Account
	Stages []why.Stage
	Lanes  []lane
	// Others are details that are about no lane.
	Others []why.Stage
	Steps  []step
	Events []event
	// EventsError is why events cannot be read.
	EventsError string
	// Policy is that which has the object; nil for none.
	Policy *object
}

// lane is what happens for a cluster.
type lane struct {
	Cluster, Link, Overrides, Work, Status string
	Cell                                   *cell
}

// step is a time of the timeline.
type step struct {
	why.Time
	// Offset is the time since the first, and Place its part of the whole, of 98.
	Offset string
	Place  int
}

// event is an event of the control plane.
type event struct {
	Age, Type, Reason, Message, Object string
	Count                              int32
}

// workload shows a workload.
func (p *pages) workload(ctx context.Context, r *http.Request) (*view, error) {
	u, account, err := p.explained(ctx, r.URL.Query())
	if err != nil {
		return nil, err
	}
	f := &flow{Account: account, Steps: steps(account.Times)}
	v := &view{page: "workload", Title: account.Object.String(), Live: true, Topic: ofNoBinding, Data: f}
	if claim, claimed := policy.Of(u); claimed {
		f.Policy = &object{why.Object{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: claim.Scope().Kind, Namespace: claim.Namespace, Name: claim.Name}}
	}
	s := p.live.state()
	cells := map[string]*cell{}
	about := []why.Object{account.Object}
	if b := bindingOf(s, account.Object); b != nil {
		v.Topic = ofNoBinding + url.QueryEscape(client.ObjectKeyFromObject(b).String())
		for _, c := range status.Cells(b, s.unready) {
			cells[c.Cluster] = &cell{c}
		}
		about = append(about, why.Object{APIVersion: workv1alpha2.GroupVersion.String(), Kind: scope.BindingIn(b.GetNamespace()).Kind, Namespace: b.GetNamespace(), Name: b.GetName()})
	}
	f.split(cells)
	f.Events, err = p.events(ctx, s.Now, u.GetNamespace(), about)
	if err != nil {
		f.EventsError = why.Line(err.Error())
	}
	return v, nil
}

// bindingOf returns the binding of an object, or nil.
func bindingOf(s *state, o why.Object) workv1alpha2.Binding {
	i := slices.IndexFunc(s.Bindings, func(b workv1alpha2.Binding) bool {
		ref := &b.GetSpec().Resource
		return ref.APIVersion == o.APIVersion && ref.Kind == o.Kind && ref.Namespace == o.Namespace && ref.Name == o.Name
	})
	if i < 0 {
		return nil
	}
	return s.Bindings[i]
}

// split separates what is about clusters that have or get the object from the rest.
func (f *flow) split(cells map[string]*cell) {
	at := map[string]int{}
	for _, s := range f.Account.Stages {
		perCluster := s.Name == "overrides" || s.Name == "work" || s.Name == "status"
		if !perCluster {
			f.Stages = append(f.Stages, s)
			continue
		}
		f.Others = append(f.Others, why.Stage{Name: s.Name, Text: s.Text, Failed: s.Failed})
		for _, d := range s.Details {
			i, found := at[d.Of]
			if !found {
				i = len(f.Lanes)
				at[d.Of] = i
				f.Lanes = append(f.Lanes, lane{Cluster: d.Of, Link: clusterLink(d.Of), Cell: cells[d.Of]})
			}
			switch s.Name {
			case "overrides":
				f.Lanes[i].Overrides = d.Text
			case "work":
				f.Lanes[i].Work = d.Text
			case "status":
				f.Lanes[i].Status = d.Text
			}
		}
	}
	slices.SortFunc(f.Lanes, func(a, b lane) int { return strings.Compare(a.Cluster, b.Cluster) })
}

// steps returns the timeline.
func steps(times []why.Time) []step {
	if len(times) == 0 {
		return nil
	}
	first, last := times[0].At.Time, times[len(times)-1].At.Time
	var out []step
	for _, t := range times {
		s := step{Time: t, Offset: duration.HumanDuration(t.At.Sub(first))}
		if all := last.Sub(first); all > 0 {
			s.Place = int(98 * t.At.Sub(first) / all)
		}
		out = append(out, s)
	}
	return out
}

// maxEvents is the number of events that a page shows.
const maxEvents = 30

// events returns the latest events about objects of a namespace.
func (p *pages) events(ctx context.Context, now time.Time, namespace string, about []why.Object) ([]event, error) {
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	var all []corev1.Event
	for _, o := range about {
		list := &corev1.EventList{}
		err := p.source.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.kind": o.Kind, "involvedObject.name": o.Name})
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	when := func(e *corev1.Event) time.Time {
		switch {
		case e.Series != nil:
			return e.Series.LastObservedTime.Time
		case !e.LastTimestamp.IsZero():
			return e.LastTimestamp.Time
		}
		return e.EventTime.Time
	}
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return when(&b).Compare(when(&a)) })
	var out []event
	for i := range all[:min(len(all), maxEvents)] {
		e := &all[i]
		count := max(e.Count, 1)
		if e.Series != nil {
			count = max(count, e.Series.Count)
		}
		out = append(out, event{duration.HumanDuration(now.Sub(when(e))), e.Type, why.Line(e.Reason), why.Line(e.Message), e.InvolvedObject.Kind, count})
	}
	return out, nil
}
