package eviction

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at returns a time that is some seconds after the beginning of a test, one hour after its clusters became Ready.
func at(seconds int) time.Time { return time.Date(2026, 1, 1, 1, 0, seconds, 0, time.UTC) }

// healthy returns a cluster whose last successful probe was at a time.
func healthy(name string, confirmed int) ClusterHealth {
	return ClusterHealth{Name: name, Ready: true, ReadyChanged: at(-3600), Confirmed: at(confirmed)}
}

// failing returns a cluster that is still Ready, while its probes fail.
func failing(name string, since int) ClusterHealth {
	return ClusterHealth{Name: name, Ready: true, ReadyChanged: at(-3600), FailingSince: at(since), Confirmed: at(since - 5)}
}

// down returns a cluster that is not Ready 30 s after its probes began to fail.
func down(name string, since int) ClusterHealth {
	return ClusterHealth{Name: name, ReadyChanged: at(since + 30), FailingSince: at(since), Confirmed: at(since - 5)}
}

// back returns a cluster that became Ready at a time.
func back(name string, since int) ClusterHealth {
	return ClusterHealth{Name: name, Ready: true, ReadyChanged: at(since), Confirmed: at(since)}
}

// unobserved returns a cluster as a process that was just started sees it: as its condition.
func unobserved(c ClusterHealth) ClusterHealth {
	c.FailingSince, c.Confirmed = time.Time{}, time.Time{}
	return c
}

func TestMassFailure_Begin(t *testing.T) {
	for name, tc := range map[string]struct {
		threshold float64
		clusters  []ClusterHealth
		held      string
		undecided string
	}{
		"all are healthy":           {0.5, []ClusterHealth{healthy("m1", 30), healthy("m2", 30), healthy("m3", 30)}, "", ""},
		"one of three":              {0.5, []ClusterHealth{down("m1", 0), healthy("m2", 30), healthy("m3", 30)}, "", ""},
		"two of three":              {0.5, []ClusterHealth{down("m1", 0), down("m2", 1), healthy("m3", 30)}, "m1 m2", ""},
		"the second is still Ready": {0.5, []ClusterHealth{down("m1", 0), failing("m2", 25), healthy("m3", 30)}, "m1", ""},
		"none is not Ready yet":     {0.5, []ClusterHealth{failing("m1", 0), failing("m2", 0), healthy("m3", 30)}, "", ""},
		"two of four are the half":  {0.5, []ClusterHealth{down("m1", 0), down("m2", 0), healthy("m3", 30), healthy("m4", 30)}, "m1 m2", ""},
		"two of five are less":      {0.5, []ClusterHealth{down("m1", 0), down("m2", 0), healthy("m3", 30), healthy("m4", 30), healthy("m5", 30)}, "", ""},
		"60 s apart":                {0.5, []ClusterHealth{down("m1", -60), down("m2", 0), healthy("m3", 30)}, "m1 m2", ""},
		"61 s apart":                {0.5, []ClusterHealth{down("m1", -61), down("m2", 0), healthy("m3", 30)}, "", ""},
		"a third one is held that failed long before": {0.5, []ClusterHealth{down("m0", -3000), down("m1", 0), down("m2", 0), healthy("m3", 30)}, "m0 m1 m2", ""},
		"a short failure of others does not hold it":  {0.5, []ClusterHealth{down("m1", -3000), failing("m2", 28), failing("m3", 28)}, "", ""},
		"40 s apart each, never two thirds in 60 s":   {1, []ClusterHealth{down("m1", -80), down("m2", -40), down("m3", 0)}, "", ""},
		"one of two":                         {0.5, []ClusterHealth{down("m1", 0), healthy("m2", 30)}, "", ""},
		"both of two":                        {0.5, []ClusterHealth{down("m1", 0), failing("m2", 3)}, "m1", ""},
		"the only one":                       {0.5, []ClusterHealth{down("m1", 0)}, "m1", ""},
		"all of three are needed":            {1, []ClusterHealth{down("m1", 0), down("m2", 0), healthy("m3", 30)}, "", ""},
		"off":                                {0, []ClusterHealth{down("m1", 0), down("m2", 0), down("m3", 0)}, "", ""},
		"0.1 of ten":                         {0.1, slices.Concat([]ClusterHealth{down("m1", 0)}, many(9)), "m1", ""},
		"the others may have failed as well": {0.5, []ClusterHealth{down("m1", 0), healthy("m2", -2), healthy("m3", 5)}, "", "m1"},
		"after a start, nothing is known of others":    {0.5, []ClusterHealth{unobserved(down("m1", -3000)), unobserved(healthy("m2", 0)), unobserved(healthy("m3", 0))}, "", "m1"},
		"after a start, one is known to be healthy":    {0.5, []ClusterHealth{unobserved(down("m1", -3000)), healthy("m2", 30), unobserved(healthy("m3", 0))}, "", "m1"},
		"after a start, all others are":                {0.5, []ClusterHealth{unobserved(down("m1", -3000)), healthy("m2", 30), healthy("m3", 30)}, "", ""},
		"after a start, all are down":                  {0.5, []ClusterHealth{unobserved(down("m1", -3000)), unobserved(down("m2", -3001)), unobserved(down("m3", -3002))}, "m1 m2 m3", ""},
		"after a start, probes begin to fail together": {0.5, []ClusterHealth{{Name: "m1", ReadyChanged: at(-3000), FailingSince: at(1)}, {Name: "m2", ReadyChanged: at(-2000), FailingSince: at(1)}, healthy("m3", 30)}, "", ""},
		"clusters without probes count by their condition": {0.5, []ClusterHealth{
			down("m1", 0), {Name: "m2", Ready: true, ReadyChanged: at(-3600), Unobserved: true}, {Name: "m3", Ready: true, ReadyChanged: at(-3600), Unobserved: true},
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := MassFailure(MassFailureFacts{Now: at(31), Threshold: tc.threshold, Clusters: tc.clusters})
			if got := strings.Join(v.Held, " "); got != tc.held {
				t.Errorf("held: %q, want %q", got, tc.held)
			}
			if got := strings.Join(v.Undecided, " "); got != tc.undecided {
				t.Errorf("undecided: %q, want %q", got, tc.undecided)
			}
			if v.State.Stopped() != (tc.held != "") {
				t.Errorf("the state is %+v", v.State)
			}
		})
	}
}

func many(n int) []ClusterHealth {
	out := make([]ClusterHealth, n)
	for i := range out {
		out[i] = healthy(fmt.Sprintf("n%d", i), 30)
	}
	return out
}

func TestMassFailure_End(t *testing.T) {
	began := MassFailure(MassFailureFacts{Now: at(31), Threshold: 0.5, Clusters: []ClusterHealth{down("m1", 0), failing("m2", 1), healthy("m3", 30)}}).State
	type step struct {
		now      int
		clusters []ClusterHealth
		resume   bool
		held     string
	}
	for name, steps := range map[string][]step{
		"all are back": {
			{40, []ClusterHealth{down("m1", 0), down("m2", 1), healthy("m3", 39)}, false, "m1 m2"},
			{100, []ClusterHealth{back("m1", 99), down("m2", 1), healthy("m3", 99)}, false, "m1 m2"},
			{109, []ClusterHealth{back("m1", 99), back("m2", 105), healthy("m3", 108)}, false, "m2"}, // m1 had its 10 s
			{114, []ClusterHealth{back("m1", 99), back("m2", 105), healthy("m3", 108)}, false, "m2"},
			{115, []ClusterHealth{back("m1", 99), back("m2", 105), healthy("m3", 108)}, false, ""},
		},
		"one stays down: it is evicted a minute after the last one is back": {
			{100, []ClusterHealth{back("m1", 99), down("m2", 1), healthy("m3", 99)}, false, "m1 m2"},
			{158, []ClusterHealth{back("m1", 99), down("m2", 1), healthy("m3", 157)}, false, "m2"},
			{160, []ClusterHealth{back("m1", 99), down("m2", 1), healthy("m3", 157)}, false, ""},
		},
		"a relapse begins a new minute": {
			{100, []ClusterHealth{back("m1", 99), down("m2", 1), healthy("m3", 99)}, false, "m1 m2"},
			{130, []ClusterHealth{down("m1", 99), down("m2", 1), healthy("m3", 129)}, false, "m1 m2"},
			{170, []ClusterHealth{back("m1", 165), down("m2", 1), healthy("m3", 169)}, false, "m1 m2"},
			{220, []ClusterHealth{back("m1", 165), down("m2", 1), healthy("m3", 219)}, false, "m2"},
			{230, []ClusterHealth{back("m1", 165), down("m2", 1), healthy("m3", 229)}, false, ""},
		},
		"an agent reports that its cluster is Ready since a time to come": {
			{100, []ClusterHealth{{Name: "m1", Ready: true, ReadyChanged: at(1e8), Confirmed: at(99)}, down("m2", 1), healthy("m3", 99)}, false, "m2"},
			{160, []ClusterHealth{{Name: "m1", Ready: true, ReadyChanged: at(1e8), Confirmed: at(99)}, down("m2", 1), healthy("m3", 99)}, false, ""},
		},
		"it does not end while they are down": {
			{90000, []ClusterHealth{down("m1", 0), down("m2", 1), healthy("m3", 89999)}, false, "m1 m2"},
		},
		"a restart while they are down": {
			{200, []ClusterHealth{unobserved(down("m1", 0)), unobserved(down("m2", 1)), unobserved(healthy("m3", 0))}, false, "m1 m2"},
		},
		"a restart after they came back: nothing is known until they are probed": {
			{200, []ClusterHealth{unobserved(back("m1", 99)), unobserved(back("m2", 99)), unobserved(healthy("m3", 0))}, false, "m1 m2"},
			{201, []ClusterHealth{{Name: "m1", Ready: true, ReadyChanged: at(99), Confirmed: at(201)}, unobserved(back("m2", 99)), healthy("m3", 201)}, false, "m2"},
			{202, []ClusterHealth{{Name: "m1", Ready: true, ReadyChanged: at(99), Confirmed: at(201)}, {Name: "m2", Ready: true, ReadyChanged: at(99), Confirmed: at(202)}, healthy("m3", 201)}, false, ""},
		},
		"they are unjoined": {
			{100, []ClusterHealth{healthy("m3", 99)}, false, ""},
		},
		"a user resumes": {
			{100, []ClusterHealth{down("m1", 0), down("m2", 1), healthy("m3", 99)}, true, ""},
			{101, []ClusterHealth{down("m1", 0), down("m2", 1), healthy("m3", 100)}, false, ""},
			{102, []ClusterHealth{unobserved(down("m1", 0)), unobserved(down("m2", 1)), healthy("m3", 101)}, false, ""},
			{131, []ClusterHealth{down("m1", 0), down("m2", 1), down("m3", 101)}, false, "m3"}, // all that count were deleted
		},
		"resumed clusters count again when they failed anew": {
			{100, []ClusterHealth{down("m1", 0), down("m2", 1), healthy("m3", 99)}, true, ""},
			{110, []ClusterHealth{back("m1", 105), back("m2", 105), healthy("m3", 109)}, false, ""},
			{150, []ClusterHealth{down("m1", 115), down("m2", 115), healthy("m3", 149)}, false, "m1 m2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := began
			for _, s := range steps {
				v := MassFailure(MassFailureFacts{Now: at(s.now), Threshold: 0.5, Clusters: s.clusters, State: state, Resume: s.resume})
				if got := strings.Join(v.Held, " "); got != s.held {
					t.Fatalf("after %d s: held %q, want %q; state %+v", s.now, got, s.held, v.State)
				}
				text, err := v.State.Encode()
				if err != nil {
					t.Fatal(err)
				}
				if state, err = DecodeMassFailure(map[string]string{StateKey: text}); err != nil || !state.Equal(&v.State) {
					t.Fatalf("the state is not the same after a restart: %v %s", err, cmp.Diff(v.State, state))
				}
			}
		})
	}
}

// TestMassFailure_History checks that a cluster that is Ready is held only while it recovers, and that no cluster is
// evicted while all that count failed together.
func TestMassFailure_History(t *testing.T) {
	const clusters = 4
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		all := make([]ClusterHealth, clusters)
		for i := range all {
			all[i] = healthy(fmt.Sprintf("m%d", i), 0)
		}
		var state MassFailureState
		for now := 1; now < 2000; now += 1 + random.IntN(20) {
			one := &all[random.IntN(clusters)]
			switch {
			case random.IntN(4) == 0:
				for i := range all { // the network of the control plane
					if all[i].FailingSince.IsZero() {
						all[i].FailingSince = at(now)
					}
				}
			case !one.FailingSince.IsZero() && one.Ready:
				one.Ready, one.ReadyChanged = false, at(now)
			case !one.FailingSince.IsZero():
				*one = back(one.Name, now)
			default:
				one.Confirmed = at(now)
			}
			v := MassFailure(MassFailureFacts{Now: at(now), Threshold: 0.5, Clusters: all, State: state})
			state = v.State
			for i := range all {
				c := &all[i]
				held := slices.Contains(v.Held, c.Name)
				if held && c.Ready && c.FailingSince.IsZero() && at(now).Sub(c.ReadyChanged) >= RecoveryGrace {
					t.Fatalf("seed %d: %s is Ready and held", seed, c.Name)
				}
				if state.Stopped() && !c.Ready && !held {
					t.Fatalf("seed %d: %s is not Ready and not held", seed, c.Name)
				}
			}
		}
	}
}
