package search

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// privileged reports whether a requester is a member of system:masters, as whom nobody is impersonated.
func privileged(requester user.Info) bool {
	return slices.Contains(requester.GetGroups(), user.SystemPrivilegedGroup)
}

// reader returns who is impersonated for a read of the control plane that is allowed to the requester: for a member of
// system:masters, who may read everything, a member of a group that may do that and nothing else.
func reader(requester user.Info) user.Info {
	if !privileged(requester) {
		return requester
	}
	return &user.DefaultInfo{Name: requester.GetName(), Groups: []string{names.ReadersGroup}}
}

// reviewsSelf reports whether a request asks the control plane about the requester, which changes nothing.
func reviewsSelf(info *genericrequest.RequestInfo) bool {
	return info.Verb == "create" && info.Subresource == "" && strings.HasPrefix(info.Resource, "selfsubject") &&
		(info.APIGroup == authorizationv1.GroupName || info.APIGroup == authenticationv1.GroupName)
}

// reviewPrivileged answers such a request of a member of system:masters, to whom API servers allow every request.
func reviewPrivileged(info *genericrequest.RequestInfo, requester user.Info) http.Handler {
	var out any
	kind := func(name string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: info.APIGroup + "/" + info.APIVersion, Kind: name}
	}
	all := []string{"*"}
	switch info.Resource {
	case "selfsubjectreviews":
		extra := map[string]authenticationv1.ExtraValue{}
		for key, values := range requester.GetExtra() {
			extra[key] = values
		}
		out = authenticationv1.SelfSubjectReview{TypeMeta: kind("SelfSubjectReview"), Status: authenticationv1.SelfSubjectReviewStatus{
			UserInfo: authenticationv1.UserInfo{Username: requester.GetName(), UID: requester.GetUID(), Groups: requester.GetGroups(), Extra: extra},
		}}
	case "selfsubjectrulesreviews":
		out = authorizationv1.SelfSubjectRulesReview{TypeMeta: kind("SelfSubjectRulesReview"), Status: authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
		}}
	default:
		out = authorizationv1.SelfSubjectAccessReview{TypeMeta: kind("SelfSubjectAccessReview"), Status: authorizationv1.SubjectAccessReviewStatus{
			Allowed: true, Reason: "a member of " + user.SystemPrivilegedGroup,
		}}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		data, err := json.Marshal(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(data)
	})
}
