package controllers

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestListed(t *testing.T) {
	in := func(namespace string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}
	}
	cache := fake.NewClientBuilder().WithObjects(in("a"), in("b")).Build()
	if got := Listed(t.Context(), cache, &corev1.SecretList{}, client.InNamespace("a")).Items; len(got) != 1 || got[0].Namespace != "a" {
		t.Errorf("got %v", got)
	}
}

func TestListed_LogsErrors(t *testing.T) {
	cache := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("stopped")
		},
	})
	logged := 0
	ctx := logr.NewContext(t.Context(), funcr.New(func(string, string) { logged++ }, funcr.Options{}))
	if got := Listed(ctx, cache, &corev1.SecretList{}).Items; len(got) != 0 || logged != 1 {
		t.Errorf("got %v and %d lines", got, logged)
	}
}
