package events

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

func pod(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: types.UID(uid)}}
}

func TestRecorder_FailureIsPublishedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		publish func(*Recorder)
		want    []string
	}{
		"again and again": {func(r *Recorder) {
			r.Warning(pod("1"), "Failed", "x")
			r.Warning(pod("1"), "Failed", "x")
		}, []string{"Warning Failed x"}},
		"with another text": {func(r *Recorder) {
			r.Warning(pod("1"), "Failed", "x")
			r.Warning(pod("1"), "Failed", "y")
		}, []string{"Warning Failed x", "Warning Failed y"}},
		"of another object": {func(r *Recorder) {
			r.Warning(pod("1"), "Failed", "x")
			r.Warning(pod("2"), "Failed", "x")
		}, []string{"Warning Failed x", "Warning Failed x"}},
		"after a success": {func(r *Recorder) {
			r.Warning(pod("1"), "Failed", "x")
			r.Normal(pod("1"), "Done", "z")
			r.Warning(pod("1"), "Failed", "x")
		}, []string{"Warning Failed x", "Normal Done z", "Warning Failed x"}},
		"after a silent recovery": {func(r *Recorder) {
			r.Warning(pod("1"), "Failed", "x")
			r.Recovered(pod("1"))
			r.Warning(pod("1"), "Failed", "x")
		}, []string{"Warning Failed x", "Warning Failed x"}},
		"of one part of the object": {func(r *Recorder) {
			r.PartWarning(pod("1"), "a", "Failed", "x")
			r.PartWarning(pod("1"), "b", "Failed", "x")
			r.PartWarning(pod("1"), "a", "Failed", "x")
			r.Warning(pod("1"), "Failed", "x")
		}, []string{"Warning Failed x", "Warning Failed x", "Warning Failed x"}},
		"of one part while the object recovers": {func(r *Recorder) {
			r.PartWarning(pod("1"), "a", "Failed", "x")
			r.Recovered(pod("1"))
			r.PartWarning(pod("1"), "a", "Failed", "x")
		}, []string{"Warning Failed x"}},
		"of an object and of a reference to it": {func(r *Recorder) {
			r.Warning(pod("1"), "Failed", "x")
			r.Warning(&corev1.ObjectReference{UID: "1"}, "Failed", "x")
		}, []string{"Warning Failed x"}},
		"of an object without uid": {func(r *Recorder) {
			r.Warning(pod(""), "Failed", "x")
			r.Warning(pod(""), "Failed", "x")
		}, []string{"Warning Failed x", "Warning Failed x"}},
	} {
		t.Run(name, func(t *testing.T) {
			fake := record.NewFakeRecorder(10)
			tc.publish(New(fake))
			close(fake.Events)
			var got []string
			for e := range fake.Events {
				got = append(got, e)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
