package certs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Installation is a control plane with its certificates: Hosted or Local.
type Installation interface {
	// own returns what can be read without the control plane.
	own(ctx context.Context) (*inventory, error)
	// connect returns a client of the control plane.
	connect(ctx context.Context) (client.Client, error)
	// rollOut returns when all processes use what was written.
	rollOut(ctx context.Context, which restarts) error
	// kept returns why an authority cannot be changed, and "" if it can.
	kept(ctx context.Context, authority named) (string, error)
	// load returns the state of a change of authorities, nil if there is none; store writes it, nil removes it.
	load(ctx context.Context) (map[string][]byte, error)
	store(ctx context.Context, data map[string][]byte) error
}

// restarts are which processes are restarted to use what was written. The others load it themselves.
type restarts int

const (
	// restartNone waits for no process.
	restartNone restarts = iota
	// restartForCertificates is for those that load certificates once, and have authorities that are enough.
	restartForCertificates
	// restartForAuthorities is for those that load authorities once, too.
	restartForAuthorities
	// restartAll is for certificates that have ended: processes may not run any more.
	restartAll
)

// Options are how certificates are renewed.
type Options struct {
	// Program is what the user types, for the next steps that errors name.
	Program string
	// Only are names of certificates, or of what they belong to, such as apiserver and etcd. Empty means all.
	Only []string
	// CACertFile and CAKeyFile are an authority in files: the new one of a change, or the one whose key the installation does not have.
	CACertFile, CAKeyFile string
	// Validity of new certificates. 0 means pki.DefaultValidity.
	Validity time.Duration
	// AgentTimeout is how long to wait for the agents that take over a new authority by themselves.
	AgentTimeout time.Duration
	Progress     progress.Reporter
	// Now is the clock.
	Now func() time.Time
}

// Result is what was done.
type Result struct {
	// Renewed are the common names and the ends of new certificates, one a line.
	Renewed []string `json:"renewed"`
	// Authorities are the names of those that are changed.
	Authorities []string `json:"authorities,omitempty"`
	// Step of the change of authorities; empty if it is finished, or there is none.
	Step string `json:"step,omitempty"`
	// Waiting are the clusters whose agents do not use the new authority.
	Waiting []string `json:"waiting,omitempty"`
	// Notes are for the user.
	Notes []string `json:"notes,omitempty"`
}

// Check returns the certificates of an installation.
func Check(ctx context.Context, in Installation) (*Report, error) {
	all, err := in.own(ctx)
	if err != nil {
		return nil, err
	}
	state, err := loadState(ctx, in)
	if err != nil {
		all.gaps = append(all.gaps, err)
	}
	var agents []Agent
	cp, err := in.connect(ctx)
	if err == nil {
		more := readControlPlane(ctx, cp)
		all.contents, all.gaps = append(all.contents, more.contents...), append(all.gaps, more.gaps...)
		agents, err = listAgents(ctx, cp)
	}
	if err != nil {
		all.gaps = append(all.gaps, fmt.Errorf("reading the control plane: %w", err))
	}
	out := newReport(all.contents, agents)
	if out.Renewal = state; state != nil {
		state.Waiting = waiting(agents, state.changes)
	}
	for _, gap := range all.gaps {
		out.Gaps = append(out.Gaps, gap.Error())
	}
	return out, nil
}

// loadState returns the state of the change of authorities that is under way, or nil.
func loadState(ctx context.Context, in Installation) (*Renewal, error) {
	data, err := in.load(ctx)
	if err != nil || data == nil {
		return nil, err
	}
	out, err := decodeRenewal(data)
	if err != nil {
		return nil, fmt.Errorf("the state of the change of authorities (%s) cannot be used: %w", components.RenewalSecret, err)
	}
	return out, nil
}

// renewer is one run.
type renewer struct {
	Options
	in    Installation
	state *Renewal
	out   *Result
	// ended reports whether a certificate that is replaced has ended.
	ended bool
}

func newRenewer(ctx context.Context, in Installation, o Options) (*renewer, error) {
	if o.Progress == nil {
		o.Progress = progress.Discard{}
	}
	state, err := loadState(ctx, in)
	if err != nil {
		return nil, err
	}
	r := &renewer{Options: o, in: in, state: state, out: &Result{Renewed: []string{}}}
	if state != nil {
		r.out.Step, r.out.Authorities = state.Step, state.Authorities
	}
	return r, nil
}

// stepLeaves is what is reported of a renewal without a change of authorities.
const stepLeaves = "certificates"

// Renew makes new certificates of the authorities that sign now, and returns when they are in use.
func Renew(ctx context.Context, in Installation, o Options) (*Result, error) {
	r, err := newRenewer(ctx, in, o)
	if err != nil {
		return nil, err
	}
	return r.out, r.perform(ctx, stepLeaves, restartForCertificates, func(all *inventory) (*exchange, error) {
		s, err := r.signers(all)
		if err != nil {
			return nil, err
		}
		leaves, err := r.chosen(all, s)
		if err != nil {
			return nil, err
		}
		x := newExchange()
		return x, r.renew(s, x, leaves, false)
	})
}

// renew adds the successors of certificates to an exchange.
func (r *renewer) renew(s *signers, x *exchange, leaves []named, missing bool) error {
	made, err := s.renew(x, leaves, missing)
	if err != nil {
		return err
	}
	r.out.Renewed = nil
	for _, c := range made {
		r.out.Renewed = append(r.out.Renewed, fmt.Sprintf("%s until %s", name(c.Subject.CommonName, "-"), c.NotAfter.Format(time.RFC3339)))
	}
	slices.Sort(r.out.Renewed)
	for _, l := range leaves {
		r.ended = r.ended || s.now.After(l.Cert.NotAfter)
	}
	return nil
}

// signers returns the authorities of the installation.
func (r *renewer) signers(all *inventory) (*signers, error) {
	out := &signers{validity: r.Validity, now: r.Now()}
	if r.state != nil && r.state.Step == StepIssued {
		out.changes = r.state.changes
	}
	own, _ := pairs(all.signing())
	for _, a := range own {
		out.authorities = append(out.authorities, a.Pair)
	}
	if r.CAKeyFile == "" {
		return out, nil
	}
	key, err := readKey(r.CAKeyFile)
	if err != nil {
		return nil, err
	}
	for p := range authorities(all.signing()) {
		if publicKey(p.cert.PublicKey) == publicKey(key.Public()) {
			out.authorities = append(out.authorities, pki.Pair{Cert: p.cert, Key: key})
			return out, nil
		}
	}
	return nil, fmt.Errorf("--ca-key-file %q belongs to none of the authorities of the installation", r.CAKeyFile)
}

// chosen returns the certificates that are to be renewed.
func (r *renewer) chosen(all *inventory, s *signers) ([]named, error) {
	_, leaves := pairs(all.contents)
	names := map[string][]string{}
	for p := range pieces(all.contents) {
		if p.cert != nil {
			names[leafKey(p.cert)] = append(names[leafKey(p.cert)], leafName(p.Place))
		}
	}
	var out []named
	found := map[string]bool{}
	var known []string
	for _, l := range leaves {
		signer, _ := s.signerOf(l.Cert)
		if signer == nil {
			if err := withoutKey(all, l); err != nil {
				return nil, err
			}
			continue
		}
		if !s.now.Before(signer.Cert.NotAfter) {
			return nil, fmt.Errorf("the authority %q ended at %s, so that it can sign no more: run %s certs renew --ca",
				signer.Cert.Subject.CommonName, signer.Cert.NotAfter.Format(time.RFC3339), r.Program)
		}
		if !l.Cert.NotAfter.Before(signer.Cert.NotAfter) {
			continue // a new one would not end later
		}
		known = append(known, names[leafKey(l.Cert)]...)
		if i := slices.IndexFunc(r.Only, func(only string) bool { return belongs(names[leafKey(l.Cert)], only) }); len(r.Only) == 0 || i >= 0 {
			out = append(out, l)
			if i >= 0 {
				found[r.Only[i]] = true
			}
		}
	}
	for _, only := range r.Only {
		if !found[only] {
			slices.Sort(known)
			return nil, fmt.Errorf("--only: there is no certificate %q; there are %s", only, strings.Join(slices.Compact(known), ", "))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no certificate of the installation was found")
	}
	return out, nil
}

// withoutKey returns an error if a certificate is of an authority of the installation, whose key is not here.
func withoutKey(all *inventory, l named) error {
	for p := range authorities(all.signing()) {
		if l.Cert.CheckSignatureFrom(p.cert) == nil {
			return fmt.Errorf("%s is signed by the authority %q, whose key the installation does not have: give its file with --ca-key-file, or name other certificates with --only",
				l.Place, name(p.cert.Subject.CommonName, p.cert.Subject.String()))
		}
	}
	return nil
}

// leafName returns what a certificate at a place is called.
func leafName(p Place) string {
	key := strings.TrimSuffix(p.Key, ".crt")
	switch {
	case p.Kind == KindFile:
		key = p.Name[strings.LastIndexByte(p.Name, '/')+1:]
		return strings.TrimSuffix(key, ".crt")
	case p.Entry != "":
		return strings.TrimSuffix(p.Name, "-config") + "-client"
	case key == "tls":
		return strings.TrimSuffix(p.Name, "-cert")
	}
	return key
}

// belongs reports whether one of some names is meant: by itself, or as one of several of a component.
func belongs(names []string, only string) bool {
	return slices.Contains(names, only) || slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, only+"-") && !slices.Contains([]string{"webhook-client"}, strings.TrimPrefix(name, only+"-"))
	})
}

// conflicts is how often contents are read again because another wrote them.
const conflicts = 5

// perform makes an exchange, first in what can be written without the control plane.
func (r *renewer) perform(ctx context.Context, step string, which restarts, make func(*inventory) (*exchange, error)) (err error) {
	defer progress.Begin(ctx, r.Progress, step, &err)()
	var x *exchange
	err = exchangeIn(ctx, func() (*inventory, *exchange, error) {
		all, err := r.in.own(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, gap := range all.gaps {
			r.note("not renewed: %s", gap)
		}
		// First what another attempt goes on from.
		slices.SortStableFunc(all.contents, func(a, b *content) int { return order(a) - order(b) })
		if x == nil {
			x, err = make(all)
		}
		return all, x, err
	})
	if err != nil {
		return err
	}
	if r.ended {
		which = restartAll
	}
	if which > restartNone {
		if err := r.in.rollOut(ctx, which); err != nil {
			return err
		}
	}
	cp, err := r.in.connect(ctx)
	if err != nil {
		return err
	}
	err = exchangeIn(ctx, func() (*inventory, *exchange, error) {
		all := readControlPlane(ctx, cp)
		return all, x, errors.Join(all.gaps...)
	})
	if err == nil {
		r.Progress.Done(step, "in use")
	}
	return err
}

// exchangeIn makes an exchange in what is read, and again if another wrote it meanwhile.
func exchangeIn(ctx context.Context, read func() (*inventory, *exchange, error)) error {
	for attempt := 1; ; attempt++ {
		all, x, err := read()
		if err != nil {
			return err
		}
		changed, err := x.apply(all.contents)
		if err == nil {
			err = save(ctx, changed)
		}
		if !apierrors.IsConflict(err) || attempt == conflicts {
			return err
		}
	}
}

func order(c *content) int {
	if c.signs {
		return 0
	}
	return 1
}

func (r *renewer) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.out.Notes, text) {
		r.out.Notes = append(r.out.Notes, text)
	}
}

// agentInterval is the time between two reads of what agents report.
const agentInterval = 2 * time.Second

// awaitAgents waits for the agents that take over new authorities by themselves, and returns the clusters of those that do not use them.
func (r *renewer) awaitAgents(ctx context.Context) ([]string, error) {
	cp, err := r.in.connect(ctx)
	if err != nil {
		return nil, err
	}
	var left []string
	err = wait.Until(ctx, wait.Options{Interval: agentInterval, Timeout: r.AgentTimeout, Publish: func(reason error) {
		if reason != nil {
			r.Progress.Waiting("agents", reason.Error())
		}
	}}, func(ctx context.Context) error {
		agents, err := listAgents(ctx, cp)
		if err != nil {
			return err
		}
		left = waiting(agents, r.state.changes)
		speak := slices.DeleteFunc(slices.Clone(left), func(cluster string) bool {
			return !slices.ContainsFunc(agents, func(a Agent) bool { return a.Cluster == cluster && a.Serial != "" && len(a.Trusts) > 0 })
		})
		if len(speak) > 0 {
			return fmt.Errorf("the agents of %s to use the new authority", strings.Join(speak, ", "))
		}
		return nil
	})
	if errors.Is(err, wait.ErrTimeout) {
		err = nil
	}
	return left, err
}
