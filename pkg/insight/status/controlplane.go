package status

import (
	"bufio"
	"cmp"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

// ControlPlane is the state of the control plane.
type ControlPlane struct {
	// Version of the API server. Empty if it is not known, as the other fields.
	Version string `json:"version,omitempty"`
	// Ready reports whether all checks of the API server pass.
	Ready *bool `json:"ready,omitempty"`
	// FailedChecks are those that do not.
	FailedChecks []string `json:"failedChecks,omitempty"`
	// Etcd is ok or failed, by the check of the API server.
	Etcd string `json:"etcd,omitempty"`
	// Roles are those that elect a leader.
	Roles []Role `json:"roles"`
	// RolesUnknown reports whether the Leases could not be read.
	RolesUnknown bool `json:"rolesUnknown,omitempty"`
	// Certificates are those that have ended or end within 30 days, as far as the controller manager knows them.
	Certificates []Certificate `json:"certificates,omitempty"`
}

// Certificate has the common name and, in RFC 3339 form, the end of a certificate.
type Certificate struct {
	Subject  string `json:"subject"`
	NotAfter string `json:"notAfter"`
}

// Role is a role that elects a leader.
type Role struct {
	// Name is that of its Lease.
	Name string `json:"name"`
	// Leader is the process that leads. Empty if none does.
	Leader string `json:"leader,omitempty"`
	// Renewed is when it renewed its Lease last.
	Renewed *time.Time `json:"renewed,omitempty"`
	// InTime reports whether that was in time.
	InTime bool `json:"inTime"`
}

func (r *reporter) controlPlane() {
	c := &r.out.ControlPlane
	c.Version, c.Roles = why.Line(r.Version), []Role{}
	if r.Readyz != "" {
		c.Etcd, c.FailedChecks = checks(r.Readyz)
		c.Ready = new(len(c.FailedChecks) == 0)
		if !*c.Ready {
			r.add(Problem{Reason: ReasonNotReady, Object: object("", "APIServer", "", "karmada-apiserver"), Workloads: len(r.Bindings),
				Text: "the API server is not ready: " + strings.Join(c.FailedChecks, ", ") + " failed"}, "kubectl", "get", "--raw", "'/readyz?verbose'")
		}
	}
	for _, g := range r.Gaps {
		if apierrors.IsServiceUnavailable(g.Err) || g.What == snapshot.Clusters && !apierrors.IsForbidden(g.Err) && !apierrors.IsUnauthorized(g.Err) {
			r.add(Problem{Reason: ReasonNotServing, Object: object("", "APIServer", "", "karmada-apiserver"), Workloads: len(r.Bindings),
				Text: "the control plane does not answer requests for " + g.String()}, r.program, "get", "apiservices", "-s", "karmada")
		}
	}
	for i := range r.Leases {
		if r.Leases[i].Spec.RenewTime != nil { // one that nobody ever held is for a role that does not elect a leader
			r.role(&r.Leases[i])
		}
	}
	r.certificates()
	c.RolesUnknown = r.Lacks(snapshot.Leases)
	slices.SortFunc(c.Roles, func(a, b Role) int { return strings.Compare(a.Name, b.Name) })
}

// checks returns the state of etcd and the names of the checks that failed.
func checks(readyz string) (etcd string, failed []string) {
	for lines := bufio.NewScanner(strings.NewReader(readyz)); lines.Scan(); {
		mark, rest, _ := strings.Cut(lines.Text(), "]")
		name, _, _ := strings.Cut(rest, " ")
		switch {
		case mark == "[-":
			failed = append(failed, why.Line(name))
			if name == "etcd" {
				etcd = "failed"
			}
		case mark == "[+" && name == "etcd":
			etcd = "ok"
		}
	}
	return etcd, failed
}

// role adds the role of a Lease.
func (r *reporter) role(l *coordinationv1.Lease) {
	last, until := failover.Renewal(l)
	holder, _, _ := strings.Cut(ptr.Deref(l.Spec.HolderIdentity, ""), "_") // the rest is random
	role := Role{Name: l.Name, Leader: why.Line(holder), InTime: holder != "" && !r.Now.After(until)}
	if !last.IsZero() {
		role.Renewed = &last
	}
	r.out.ControlPlane.Roles = append(r.out.ControlPlane.Roles, role)
	if role.InTime {
		return
	}
	text := "no " + l.Name + " leads"
	if !last.IsZero() {
		text += ": its Lease was renewed " + duration.HumanDuration(r.Now.Sub(last)) + " ago"
	}
	r.add(Problem{Reason: ReasonNoLeader, Object: object(coordinationv1.SchemeGroupVersion.String(), "Lease", l.Namespace, l.Name),
		Workloads: len(r.Bindings), Text: text}, r.program, "describe", "lease", l.Name, "-n", l.Namespace)
}

// certificates adds what recent events report of certificates that end, those that have ended first. Old events are about renewed ones.
func (r *reporter) certificates() {
	key := func(e *corev1.Event) string {
		return cmp.Or(e.Annotations[names.CertificateNotAfter], "others") + e.Annotations[names.CertificateSubject]
	}
	events := slices.DeleteFunc(slices.Clone(r.Events), func(e corev1.Event) bool {
		return e.Reason != names.CertificateEnding && e.Reason != names.CertificateEnded || r.Now.Sub(e.LastTimestamp.Time) > 2*time.Hour
	})
	slices.SortFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(strings.Compare(key(&a), key(&b)), b.LastTimestamp.Compare(a.LastTimestamp.Time))
	})
	for _, e := range slices.CompactFunc(events, func(a, b corev1.Event) bool { return key(&a) == key(&b) }) {
		if end := e.Annotations[names.CertificateNotAfter]; end != "" {
			r.out.ControlPlane.Certificates = append(r.out.ControlPlane.Certificates, Certificate{why.Line(e.Annotations[names.CertificateSubject]), why.Line(end)})
		}
		text, _, _ := strings.Cut(e.Message, "; ") // the rest is what to do
		r.add(Problem{Reason: e.Reason, Object: object("v1", "Namespace", "", e.InvolvedObject.Name), Text: text}, r.program, "certs", "check")
	}
}
