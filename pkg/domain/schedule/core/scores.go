package core

import (
	"fmt"

	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// scores adds up what the plugins give the candidates of a scheduling cycle.
type scores struct {
	cycle *cycle
	// given holds the score of each plugin for each cluster, plugin after plugin;
	// nil while all are 0.
	given []uint8
}

// add adds the scores of every plugin.
func (s *scores) add(plugins []framework.Score) error {
	for j, plugin := range plugins {
		if normalizer, ok := plugin.(framework.Normalizer); ok {
			if err := s.normalized(j, len(plugins), normalizer); err != nil {
				return err
			}
			continue
		}
		for i := range s.cycle.candidates {
			at := s.cycle.candidates[i].at
			n, err := plugin.Score(&s.cycle.pass, s.cycle.snapshot.At(int(at)))
			if err == nil {
				err = s.give(j, len(plugins), at, n)
			}
			if err != nil {
				return fmt.Errorf("plugin %q failed with: %w", plugin.Name(), err)
			}
		}
	}
	return nil
}

// give adds the score of one of several plugins to a cluster.
func (s *scores) give(plugin, of int, at int32, n int64) error {
	if n < 0 || n > framework.MaxScore {
		return fmt.Errorf("score %d is not in 0..%d", n, framework.MaxScore)
	}
	if n == 0 {
		return nil
	}
	records := s.cycle.records
	if s.given == nil {
		s.given = make([]uint8, len(records)*of)
	}
	s.given[plugin*len(records)+int(at)] = uint8(n)
	records[at].score += n
	return nil
}

func (s *scores) normalized(j, of int, plugin framework.Normalizer) error {
	scores := make([]int64, len(s.cycle.candidates))
	for i := range scores {
		n, err := plugin.Score(&s.cycle.pass, s.cycle.snapshot.At(int(s.cycle.candidates[i].at)))
		if err != nil {
			return fmt.Errorf("plugin %q failed with: %w", plugin.Name(), err)
		}
		scores[i] = n
	}
	if err := plugin.Normalize(&s.cycle.pass, scores); err != nil {
		return fmt.Errorf("plugin %q normalizeScore failed with: %w", plugin.Name(), err)
	}
	for i, n := range scores {
		if err := s.give(j, of, s.cycle.candidates[i].at, n); err != nil {
			return fmt.Errorf("plugin %q failed with: %w", plugin.Name(), err)
		}
	}
	return nil
}
