package certs

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/init/certs"
)

func TestRenewal_Validate(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*renewal)
		want string
	}{
		{"all", func(*renewal) {}, ""},
		{"authorities", func(r *renewal) { r.ca = true }, ""},
		{"finish alone", func(r *renewal) { r.finish = true }, "--finish is the last step of --ca"},
		{"force alone", func(r *renewal) { r.force, r.ca = true, true }, "--force is for --finish"},
		{"only some authorities", func(r *renewal) { r.ca, r.Only = true, []string{"etcd"} }, "--only and --ca cannot be used together"},
		{"an authority without --ca", func(r *renewal) { r.CACertFile = "x" }, "--ca-cert-file is a new authority"},
		{"an authority without its key", func(r *renewal) { r.CACertFile, r.ca = "x", true }, "--ca-cert-file and --ca-key-file belong together"},
		{"the key of the authority", func(r *renewal) { r.CAKeyFile = "x" }, ""},
		{"no time for agents", func(r *renewal) { r.agentWaitSeconds = -1 }, "--agent-timeout must be greater than 0"},
		{"no time", func(r *renewal) { r.validity = "0" }, `--cert-validity-period: "0" is not a duration`},
		{"too long", func(r *renewal) { r.validity = "200000d" }, "is not a duration"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &renewal{flags: newFlags(), validity: "365d", agentWaitSeconds: 1}
			tc.set(r)
			err := r.validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if d, err := parseDuration("--within", "30d"); err != nil || d != 30*24*time.Hour {
		t.Error(d, err)
	}
}

func TestPrint(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	since := now.AddDate(0, 0, -200)
	secret := func(key string) certs.Place {
		return certs.Place{Kind: "Secret", Namespace: "karmada-system", Name: "karmada-cert", Key: key}
	}
	r := &certs.Report{
		Certificates: []certs.Certificate{
			{Subject: "system:admin", Issuer: "karmada", NotAfter: now.AddDate(0, 0, -2), Places: []certs.Place{secret("admin.crt"), secret("x")}},
			{Subject: "karmada-apiserver", Issuer: "karmada", NotAfter: now.AddDate(0, 0, 20), Places: []certs.Place{secret("apiserver.crt")}},
			{Subject: "karmada", Issuer: "karmada", Authority: true, NotAfter: now.AddDate(9, 0, 0), Places: []certs.Place{secret("ca.crt")}},
		},
		Keys:    []certs.Key{{Name: "service-account", Since: &since, Places: []certs.Place{secret("service-account.key")}}},
		Renewal: &certs.Renewal{Step: certs.StepIssued, Authorities: []string{"karmada"}, Waiting: []string{"m1"}},
		Gaps:    []string{"the control plane does not answer"},
	}
	var out bytes.Buffer
	if err := print(&out, r, 30*24*time.Hour, now); err != nil {
		t.Fatal(err)
	}
	want := `CERTIFICATE             ISSUER    VALID UNTIL            LEFT           USED IN
system:admin            karmada   2025-12-30T00:00:00Z   ended 2d ago   Secret karmada-system/karmada-cert admin.crt, 1 more
karmada-apiserver       karmada   2026-01-21T00:00:00Z   20d            Secret karmada-system/karmada-cert apiserver.crt
karmada (authority)     itself    2035-01-01T00:00:00Z   9y             Secret karmada-system/karmada-cert ca.crt
service-account (key)   -         no end                 200d old       Secret karmada-system/karmada-cert service-account.key

1 certificates have ended.

A change of the authorities karmada is under way, after the step "issued".
The agents of these clusters do not use the new authority: m1.
not read: the control plane does not answer
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
