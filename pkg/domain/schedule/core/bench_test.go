package core_test

import (
	"fmt"
	"testing"

	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// BenchmarkSchedule measures decisions: `make bench` prints them per second.
func BenchmarkSchedule(b *testing.B) {
	for _, clusters := range []int{10, 100, 1000} {
		snapshot := framework.SnapshotOf(fleet(clusters), true)
		for _, strategy := range strategies() {
			b.Run(fmt.Sprintf("clusters=%d/%s", clusters, strategy.name), func(b *testing.B) {
				request := requestFor(b, strategy.placement(), int32(3*clusters+7))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := core.Schedule(snapshot, request); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			})
		}
	}
}

// BenchmarkExplain measures what an explanation adds to a decision.
func BenchmarkExplain(b *testing.B) {
	for _, clusters := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("clusters=%d", clusters), func(b *testing.B) {
			snapshot := framework.SnapshotOf(fleet(clusters), true)
			request := requestFor(b, strategies()[1].placement(), int32(3*clusters+7))
			decision, err := core.Schedule(snapshot, request)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				decision.Explain()
			}
		})
	}
}
