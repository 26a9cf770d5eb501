package client

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// NewOptions returns the defaults of the flags.
func NewOptions() Options {
	return Options{Timeout: defaultTimeout, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Prefix: "karmada-scheduler-estimator", Port: 10352}
}

// AddFlags adds the flags of the roles that call estimators.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.Timeout, "scheduler-estimator-timeout", o.Timeout, "How long to wait for the estimators.")
	fs.StringVar(&o.Namespace, "scheduler-estimator-service-namespace", o.Namespace, "Namespace of the estimators' Services.")
	fs.StringVar(&o.Prefix, "scheduler-estimator-service-prefix", o.Prefix, "What the names of the estimators' Services begin with; the name of the cluster follows.")
	fs.IntVar(&o.Port, "scheduler-estimator-port", o.Port, "Port of the estimators.")
	fs.StringVar(&o.CertFile, "scheduler-estimator-cert-file", o.CertFile, "Client certificate for the estimators.")
	fs.StringVar(&o.KeyFile, "scheduler-estimator-key-file", o.KeyFile, "Key of that certificate.")
	fs.StringVar(&o.CAFile, "scheduler-estimator-ca-file", o.CAFile, "CA of the estimators' certificates.")
	fs.BoolVar(&o.InsecureSkipVerify, "insecure-skip-estimator-verify", o.InsecureSkipVerify, "Do not check the estimators' certificates.")
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs []error
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("--scheduler-estimator-timeout is %s, must not be negative", o.Timeout))
	}
	if o.Port < 0 || o.Port > 65535 {
		errs = append(errs, fmt.Errorf("--scheduler-estimator-port is %d, must be between 0 and 65535", o.Port))
	}
	return errors.Join(errs...)
}
