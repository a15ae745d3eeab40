// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The versions of TokenReview. Their fields are the same.
const (
	group     = "authentication.k8s.io/"
	versionV1 = group + "v1"
	versionB1 = group + "v1beta1"
	kind      = "TokenReview"
)

// review is the part of a TokenReview that asks.
type review struct {
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		Token     string   `json:"token"`
		Audiences []string `json:"audiences"`
	} `json:"spec"`
}

// errReview is about a body that is not a TokenReview. It does not repeat the body, which holds a token.
var errReview = errors.New("expected a request body to be a TokenReview")

// readReview reads a request's body.
func readReview(raw []byte) (review, error) {
	var r review
	if err := json.Unmarshal(raw, &r); err != nil {
		return review{}, errReview
	}
	if r.APIVersion == "" && r.Kind == "" { // aws-iam-authenticator does not ask for them
		r.APIVersion, r.Kind = versionB1, kind
	}
	if r.Kind != kind || r.APIVersion != versionV1 && r.APIVersion != versionB1 {
		return review{}, fmt.Errorf("%w of %s or %s", errReview, versionV1, versionB1)
	}
	if r.Spec.Token == "" {
		return review{}, fmt.Errorf("%w with a token", errReview)
	}
	// kube-apiserver takes " x" for no token at all and calls its holder anonymous, or panics (v1.36.3). It never sends
	// such a one, and another client should not hear anything that could be taken for an answer about the token behind
	// the space.
	if strings.TrimSpace(r.Spec.Token) != r.Spec.Token {
		return review{}, fmt.Errorf("%w with a token that neither begins nor ends with a space", errReview)
	}
	return r, nil
}

// answer makes the TokenReview that answers, in the version that was asked.
func (r review) answer(d Decision, audiences []string) authenticationv1.TokenReview {
	out := authenticationv1.TokenReview{TypeMeta: metav1.TypeMeta{APIVersion: r.APIVersion, Kind: kind}}
	if d.Status != http.StatusOK {
		return out
	}
	out.Status = authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: audiences,
		User: authenticationv1.UserInfo{Username: d.User.Name, UID: d.User.UID, Groups: d.User.Groups},
	}
	if len(d.User.Extra) > 0 {
		out.Status.User.Extra = make(map[string]authenticationv1.ExtraValue, len(d.User.Extra))
		for key, values := range d.User.Extra {
			out.Status.User.Extra[key] = values
		}
	}
	return out
}

// audiences are those that both sides name. An answer without any says that the token is good for the API server
// itself, which then compares that with what was asked for (TokenReviewStatus.audiences in the API reference).
func audiences(asked, own []string) (both []string, ok bool) {
	if len(own) == 0 || len(asked) == 0 {
		return nil, true
	}
	for _, a := range asked {
		if slices.Contains(own, a) {
			both = append(both, a)
		}
	}
	return both, len(both) > 0
}
