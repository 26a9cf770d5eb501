package federatedquota

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/kube"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/ledgers"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/webhook"
	"github.com/karmada-toolkit/karmada/pkg/domain/quota"
)

const (
	historySeeds = 12
	historySteps = 300
	historyLimit = 40 // cpu
)

var bindingResource = schema.GroupResource{Group: "work.karmada.io", Resource: "resourcebindings"}

// history is an API server whose admission is the webhook, and the controller that counts. Everything may fail at any
// step, and writes may be stored long after admission.
type history struct {
	*testing.T
	random   *rand.Rand
	client   client.WithWatch
	bindings map[string]workv1alpha2.ResourceBinding
	version  int
	// cache is what the controller has observed.
	cache map[string]workv1alpha2.ResourceBinding
	clock *testingclock.FakeClock
	// late are writes that passed admission and are not stored yet.
	late     []write
	webhooks []http.Handler
	counter  *counter
	// faulty is whether writes of ledgers may fail.
	faulty bool
	log    []string
}

// write is an operation of a client: the wanted replicas of a binding, or its deletion.
type write struct {
	name     string
	replicas int32
	// version is that of the binding that admission was given, empty for a new one.
	version string
	uid     types.UID
}

func binding(name string, uid types.UID, replicas int32) workv1alpha2.ResourceBinding {
	return workv1alpha2.ResourceBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1alpha2.GroupVersion.String(), Kind: "ResourceBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:            workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: name},
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			Clusters:            []workv1alpha2.TargetCluster{{Name: "m1", Replicas: replicas}},
		},
	}
}

func newHistory(t *testing.T, seed uint64) *history {
	q := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q"}}
	q.Spec.Overall = corev1.ResourceList{"cpu": *resource.NewQuantity(historyLimit, resource.DecimalSI)}
	h := &history{
		T: t, random: rand.New(rand.NewPCG(seed, 1)), bindings: map[string]workv1alpha2.ResourceBinding{}, version: 100,
		clock: testingclock.NewFakeClock(time.Now()), faulty: true,
	}
	fault := func(write func() error) error {
		if h.faulty && h.random.IntN(20) == 0 {
			return errors.New("not written")
		}
		err := write()
		if h.faulty && h.random.IntN(20) == 0 {
			return errors.Join(errors.New("the answer is lost"), err)
		}
		return err
	}
	h.client = fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithStatusSubresource(q).WithObjects(q).WithInterceptorFuncs(interceptor.Funcs{
		Get:  h.get,
		List: h.list(func() map[string]workv1alpha2.ResourceBinding { return h.bindings }),
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return fault(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return fault(func() error { return c.Update(ctx, obj, opts...) })
		},
	}).Build()
	h.webhooks = make([]http.Handler, 2)
	for i := range h.webhooks {
		h.startWebhook(i)
	}
	h.startController()
	return h
}

func (h *history) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	into, ok := obj.(*workv1alpha2.ResourceBinding)
	if !ok {
		return c.Get(ctx, key, obj, opts...)
	}
	b, ok := h.bindings[key.Name]
	if !ok {
		return apierrors.NewNotFound(bindingResource, key.Name)
	}
	*into = b
	return nil
}

// list lists bindings from a store, and everything else from the client.
func (h *history) list(store func() map[string]workv1alpha2.ResourceBinding) func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
	return func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		into, ok := list.(*workv1alpha2.ResourceBindingList)
		if !ok {
			return c.List(ctx, list, opts...)
		}
		into.Items = slices.Collect(maps.Values(store()))
		return nil
	}
}

func (h *history) startWebhook(i int) {
	handlers, err := webhook.Handlers(webhook.Deps{
		Reader: h.client, LiveReader: h.client, Writer: h.client, Metrics: prometheus.NewRegistry(), Enforcement: true, Clock: h.clock,
	})
	if err != nil {
		h.Fatal(err)
	}
	h.webhooks[i] = handlers["/validate-resourcebinding"]
}

// startController starts the controller with a cache that is filled.
func (h *history) startController() {
	h.cache = maps.Clone(h.bindings)
	cached := interceptor.NewClient(h.client, interceptor.Funcs{List: h.list(func() map[string]workv1alpha2.ResourceBinding { return h.cache })})
	h.counter = &counter{
		client: cached, live: h.client, ledgers: ledgers.Ledgers{Live: h.client, Writer: h.client}, events: events.New(record.NewFakeRecorder(100_000)),
		clock: h.clock, written: map[string]time.Time{"ns": {}},
	}
}

// count makes a pass of the controller.
func (h *history) count() error {
	_, err := h.counter.Reconcile(h.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "ns"}})
	return err
}

// admit calls one of the webhooks.
func (h *history) admit(w write) bool {
	request := &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Namespace: "ns", Name: w.name}
	encode := func(b workv1alpha2.ResourceBinding) runtime.RawExtension {
		raw, err := json.Marshal(b)
		if err != nil {
			h.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	request.Object = encode(binding(w.name, w.uid, w.replicas))
	if w.version != "" {
		request.Operation, request.OldObject = admissionv1.Update, encode(h.bindings[w.name])
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		h.Fatal(err)
	}
	req := httptest.NewRequestWithContext(h.Context(), http.MethodPost, "/", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.webhooks[h.random.IntN(len(h.webhooks))].ServeHTTP(recorder, req)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || review.Response == nil {
		h.Fatalf("%v in %s", err, recorder.Body)
	}
	return review.Response.Allowed
}

// store stores a write unless the binding changed meanwhile.
func (h *history) store(w write) bool {
	before, exists := h.bindings[w.name]
	if exists != (w.version != "") || before.ResourceVersion != w.version {
		return false
	}
	h.put(binding(w.name, w.uid, w.replicas))
	return true
}

func (h *history) put(b workv1alpha2.ResourceBinding) {
	h.version++
	b.ResourceVersion = strconv.Itoa(h.version)
	h.bindings[b.Name] = b
}

// step does something at random.
func (h *history) step() {
	name := fmt.Sprintf("b%d", h.random.IntN(6))
	b, exists := h.bindings[name]
	switch n := h.random.IntN(20); {
	case n < 8:
		w := write{name, int32(h.random.IntN(16)), b.ResourceVersion, b.UID}
		if !exists {
			h.version++
			w.uid = types.UID(strconv.Itoa(h.version))
		}
		h.log = append(h.log, fmt.Sprintf("write %+v", w))
		for range 1 + h.random.IntN(2) { // an API server may call admission again
			if !h.admit(w) {
				return
			}
		}
		switch h.random.IntN(4) {
		case 0: // refused by something else, or the API server ends
		case 1:
			h.late = append(h.late, w)
		default:
			h.store(w)
		}
	case n < 10 && len(h.late) > 0:
		i := h.random.IntN(len(h.late))
		h.log = append(h.log, fmt.Sprintf("late %+v", h.late[i]))
		h.store(h.late[i])
		h.late = slices.Delete(h.late, i, i+1)
	case n < 12 && exists:
		h.log = append(h.log, "touch "+name)
		h.put(b)
	case n < 13 && exists:
		h.log = append(h.log, "delete "+name)
		delete(h.bindings, name)
	case n < 15:
		h.log = append(h.log, "observe")
		h.cache = maps.Clone(h.bindings)
	case n < 18:
		h.log = append(h.log, "count")
		_ = h.count() // tried again later
		h.clock.Step(time.Second)
	case n < 19 && h.random.IntN(4) == 0:
		h.log = append(h.log, "requests time out")
		h.late = nil
		h.clock.Step(quota.ReservationTTL + time.Second)
	case n < 19:
		h.log = append(h.log, "restart a webhook")
		h.startWebhook(h.random.IntN(len(h.webhooks)))
	default:
		h.log = append(h.log, "restart the controller")
		h.startController()
	}
}

// stored returns what the stored bindings use.
func (h *history) stored() resource.Quantity {
	var total resource.Quantity
	for _, b := range h.bindings {
		total.Add(quota.Usage(&b.Spec)["cpu"])
	}
	return total
}

// check fails if more is stored than the quota allows, or than is charged.
func (h *history) check() {
	used := h.stored()
	if used.CmpInt64(historyLimit) > 0 {
		h.Fatalf("%s is used of %d", used.String(), historyLimit)
	}
	ledger, err := h.counter.ledgers.Get(h.Context(), "ns")
	if err != nil {
		h.Fatal(err)
	}
	total := ledger.Total()["cpu"]
	if ledger.Counted && total.Cmp(used) < 0 {
		h.Fatalf("%s is charged for %s: %+v", total.String(), used.String(), ledger.Ledger)
	}
	for _, r := range ledger.Reservations {
		if i := slices.IndexFunc(ledger.Reservations, func(o quota.Reservation) bool { return o.Binding == r.Binding }); ledger.Reservations[i].Version != r.Version {
			h.Fatalf("%s has two reservations", r.Binding)
		}
	}
}

// end lets everything finish and fails unless exactly what is stored is charged.
func (h *history) end() {
	h.faulty, h.late = false, nil
	h.cache = maps.Clone(h.bindings)
	h.clock.Step(quota.ReservationTTL + time.Second)
	for range 2 {
		if err := h.count(); err != nil {
			h.Fatal(err)
		}
		h.clock.Step(time.Second)
	}
	ledger, err := h.counter.ledgers.Get(h.Context(), "ns")
	if err != nil {
		h.Fatal(err)
	}
	q := &policyv1alpha1.FederatedResourceQuota{}
	if err := h.client.Get(h.Context(), client.ObjectKey{Namespace: "ns", Name: "q"}, q); err != nil {
		h.Fatal(err)
	}
	used, total, reported := h.stored(), ledger.Total()["cpu"], q.Status.OverallUsed["cpu"]
	if len(ledger.Reservations) > 0 || total.Cmp(used) != 0 || reported.Cmp(used) != 0 {
		h.Errorf("%s is charged and %s reported for %s: %+v", total.String(), reported.String(), used.String(), ledger.Ledger)
	}
}

// seeds returns the number of histories: FAULTS times the usual.
func seeds(t *testing.T) uint64 {
	text := os.Getenv("FAULTS")
	if text == "" {
		return historySeeds
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatalf("FAULTS: %v", err)
	}
	return n * historySeeds
}

// TestHistory_ChargesOnce shows that what bindings use is charged exactly once, whatever is retried, lost or restarted,
// and that a quota is never exceeded.
func TestHistory_ChargesOnce(t *testing.T) {
	for seed := range seeds(t) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			h := newHistory(t, seed)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the last steps were %q", h.log[max(0, len(h.log)-25):])
				}
			})
			for range historySteps {
				h.step()
				h.check()
			}
			h.end()
		})
	}
}
