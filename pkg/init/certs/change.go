package certs

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
)

// ourAuthorities are the names of the authorities that installations make. Others were given by a user.
func ourAuthorities() []string {
	return []string{"karmada", "front-proxy-ca", "etcd-ca", "kubernetes"}
}

// RenewAuthorities puts new authorities beside the old ones, and returns when everything that the installation has is of the new ones
// and trusts both. It goes on with a change that was interrupted.
func RenewAuthorities(ctx context.Context, in Installation, o Options) (*Result, error) {
	r, err := newRenewer(ctx, in, o)
	if err != nil {
		return nil, err
	}
	if r.state == nil {
		if err := r.prepare(ctx); err != nil {
			return nil, err
		}
	}
	if r.state.Step == StepFinishing {
		return nil, fmt.Errorf("the old authorities are being removed: run %s certs renew --ca --finish again", o.Program)
	}
	if r.state.Step == StepPrepared {
		err := r.perform(ctx, StepTrusted, r.unlessCrossed(restartNone, restartAll), func(*inventory) (*exchange, error) {
			return trust(r.state.changes, false), nil
		})
		if err == nil {
			err = r.record(ctx, StepTrusted)
		}
		if err != nil {
			return r.out, err
		}
	}
	if r.state.Step == StepTrusted {
		if err := r.issue(ctx); err != nil {
			return r.out, err
		}
	}
	r.out.Waiting, err = r.awaitAgents(ctx)
	return r.out, err
}

// prepare makes the new authorities.
func (r *renewer) prepare(ctx context.Context) error {
	all, err := r.in.own(ctx)
	if err != nil {
		return err
	}
	own, _ := pairs(all.signing())
	r.state = &Renewal{Began: r.Now().UTC()}
	given := r.CACertFile != ""
	for _, a := range own {
		why, err := r.in.kept(ctx, a)
		if err != nil {
			return err
		}
		if why != "" {
			r.note("the authority %s is kept: %s", a.Cert.Subject.CommonName, why)
			continue
		}
		c, err := r.change(a)
		if err != nil {
			return err
		}
		r.state.changes = append(r.state.changes, c)
		r.state.Authorities = append(r.state.Authorities, c.old.Subject.CommonName)
	}
	if len(r.state.changes) == 0 {
		return errors.New("the installation has no authority with its key, so none can be changed")
	}
	if given && r.CACertFile != "" {
		return fmt.Errorf("--ca-cert-file: the installation has no authority that was given by a user, or that is called %q", ourAuthorities()[0])
	}
	return r.record(ctx, StepPrepared)
}

// change returns the change of one authority. The one that is given in files takes the place of the authority of the control plane.
func (r *renewer) change(old named) (change, error) {
	common := old.Cert.Subject.CommonName
	custom := !slices.Contains(ourAuthorities(), common) || old.Cert.CheckSignatureFrom(old.Cert) != nil
	if !custom && (r.CACertFile == "" || common != ourAuthorities()[0]) {
		return newChange(old.Pair, pki.Pair{}, r.Now())
	}
	if r.CACertFile == "" || r.CAKeyFile == "" {
		return change{}, fmt.Errorf("the authority %q was given by a user: give the new one with --ca-cert-file and --ca-key-file", name(common, old.Cert.Subject.String()))
	}
	given, err := credentials.ReadPair("--ca-cert-file", r.CACertFile, "--ca-key-file", r.CAKeyFile)
	if err == nil {
		err = pki.VerifyCA(given, r.Now())
	}
	if err == nil && given.Cert.Equal(old.Cert) {
		err = fmt.Errorf("--ca-cert-file %q is the authority that is in use", r.CACertFile)
	}
	if err != nil {
		return change{}, err
	}
	r.CACertFile = ""
	return newChange(old.Pair, given, r.Now())
}

// record writes that a step was completed.
func (r *renewer) record(ctx context.Context, step string) error {
	r.state.record(step, r.Now())
	data, err := r.state.encode()
	if err == nil {
		err = r.in.store(ctx, data)
	}
	if err != nil {
		return fmt.Errorf("writing the state of the change of authorities: %w", err)
	}
	r.out.Step, r.out.Authorities = step, r.state.Authorities
	return nil
}

// unlessCrossed returns crossed if certificates of the new authorities are accepted by processes with the old ones alone, and otherwise not.
func (r *renewer) unlessCrossed(crossed, otherwise restarts) restarts {
	if slices.ContainsFunc(r.state.changes, func(c change) bool { return c.cross == nil }) {
		return otherwise
	}
	return crossed
}

// issue exchanges all certificates of the old authorities.
func (r *renewer) issue(ctx context.Context) error {
	err := r.perform(ctx, StepIssued, r.unlessCrossed(restartForCertificates, restartForAuthorities), func(all *inventory) (*exchange, error) {
		s := &signers{changes: r.state.changes, validity: r.Validity, now: r.Now()}
		_, leaves := pairs(all.contents)
		x := trust(r.state.changes, true)
		return x, r.renew(s, x, leaves, true)
	})
	if err != nil {
		return err
	}
	return r.record(ctx, StepIssued)
}

// Finish removes the old authorities. With force also while agents still need them.
func Finish(ctx context.Context, in Installation, o Options, force bool) (*Result, error) {
	r, err := newRenewer(ctx, in, o)
	if err != nil {
		return nil, err
	}
	switch {
	case r.state == nil:
		return nil, fmt.Errorf("no change of authorities is under way, so there is nothing to finish: %s certs renew --ca begins one", o.Program)
	case r.state.Step != StepIssued && r.state.Step != StepFinishing:
		return nil, fmt.Errorf("the change of authorities was interrupted after the step %q: run %s certs renew --ca again first", r.state.Step, o.Program)
	}
	if r.out.Waiting, err = r.awaitAgents(ctx); err != nil && !force {
		return nil, err
	}
	if len(r.out.Waiting) > 0 && !force {
		return r.out, fmt.Errorf("the agents of %s do not use the new authority yet, and would lose the control plane: %s; or use --force",
			strings.Join(r.out.Waiting, ", "), Reregister(o.Program))
	}
	if err := r.record(ctx, StepFinishing); err != nil {
		return nil, err
	}
	var old, cross []*x509.Certificate
	for _, c := range r.state.changes {
		old, cross = append(old, c.old), append(cross, c.cross)
	}
	err = r.perform(ctx, StepFinishing, restartForAuthorities, func(*inventory) (*exchange, error) { return without(old...), nil })
	if err == nil { // all know the new authorities now, and need no chain to the old ones
		err = r.perform(ctx, "chains", restartNone, func(*inventory) (*exchange, error) { return without(cross...), nil })
	}
	if err == nil {
		err = r.in.store(ctx, nil)
	}
	if err == nil {
		r.out.Step = ""
	}
	return r.out, err
}

// Reregister returns what to do for an agent that does not take over a new authority by itself.
func Reregister(program string) string {
	return fmt.Sprintf("register each of these clusters again with the command that \"%s token create --print-register-command\" prints", program)
}

func readKey(path string) (crypto.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading --ca-key-file: %w", err)
	}
	key, err := pki.ParseKey(data)
	if err != nil {
		return nil, fmt.Errorf("reading --ca-key-file %q: %w", path, err)
	}
	return key, nil
}
