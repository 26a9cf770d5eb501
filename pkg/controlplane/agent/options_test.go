package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Options)
		want   string // empty: valid
	}{
		{"the defaults and a name", func(*Options) {}, ""},
		{"no name", func(o *Options) { o.ClusterName = "" }, "--cluster-name"},
		{"a name that no cluster can have", func(o *Options) { o.ClusterName = "Not_A_Name" }, "--cluster-name"},
		{"a negative frequency", func(o *Options) { o.StatusFrequency = -time.Second }, "--cluster-status-update-frequency"},
		{"no lease", func(o *Options) { o.LeaseDuration = 0 }, "--cluster-lease-duration"},
		{"a fraction that is a whole", func(o *Options) { o.RenewFraction = 1 }, "--cluster-lease-renew-interval-fraction"},
		{"a threshold of nothing", func(o *Options) { o.RotationThreshold = 0 }, "--cert-rotation-remaining-time-threshold"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := NewOptions()
			o.ClusterName = "m3"
			tt.change(o)
			err := o.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestEnabled_CertRotationIsOffUntilNamed(t *testing.T) {
	tests := []struct {
		name              string
		controllers       []string
		rotation, execute bool
	}{
		{"the default", []string{"*"}, false, true},
		{"named beside all", []string{"*", "certRotation"}, true, true},
		{"one taken out", []string{"*", "-execution"}, false, false},
		{"only one", []string{"certRotation"}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &Options{Controllers: tt.controllers}
			if o.Enabled(controllerCertRotation) != tt.rotation || o.Enabled(controllerExecution) != tt.execute {
				t.Errorf("certRotation %t, execution %t", o.Enabled(controllerCertRotation), o.Enabled(controllerExecution))
			}
		})
	}
}

func TestFlags_ReportSecrets(t *testing.T) {
	tests := []struct {
		args                      []string
		credentials, impersonator bool
	}{
		{nil, true, true},
		{[]string{"--report-secrets=None"}, false, false},
		{[]string{"--report-secrets=KubeImpersonator"}, false, true},
		{[]string{"--report-secrets=KubeCredentials,Whatever"}, true, false},
	}
	for _, tt := range tests {
		o := NewOptions()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		if o.reports(reportCredentials) != tt.credentials || o.reports(reportImpersonator) != tt.impersonator {
			t.Errorf("%v: credentials %t, impersonator %t", tt.args, o.reports(reportCredentials), o.reports(reportImpersonator))
		}
	}
}
