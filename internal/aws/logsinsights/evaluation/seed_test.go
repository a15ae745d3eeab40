// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"slices"
	"strings"
	"testing"
)

// The three queries of a well-known article about how EKS's nodes join, as they stand in it.
const (
	authorizationMode = `filter @logStream not like /^kube-apiserver-audit/
 | filter @logStream like /^kube-apiserver-/
 | fields @timestamp, @message
 | sort @timestamp asc
 | filter @message like "--authorization-mode"
 | limit 10000`
	controllers = `filter @logStream not like /^kube-controller-manager/
 | fields @timestamp, @message
 | sort @timestamp asc
 | filter @message like "--controller"
 | limit 10000`
	signingRequest = `filter @logStream like /^kube-apiserver-audit/
 | fields @timestamp, @message
 | sort @timestamp asc
 | filter @message like 'csr-kdkll'
 | limit 10000`
)

func TestAuthorizationMode(t *testing.T) {
	got := ask(t, authorizationMode, recorded(t))
	want := []string{`@timestamp=2026-11-29 20:40:04.861 @message=I1129 20:40:04.861300   31584 flags.go:64] FLAG: --authorization-mode="[Node,RBAC]"`}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The article's query leaves out the stream that has its answer, so that CloudWatch would find nothing either.
func TestControllers(t *testing.T) {
	if got := ask(t, controllers, recorded(t)); len(got) != 0 {
		t.Errorf("%q", got)
	}
	got := ask(t, strings.Replace(controllers, "not like", "like", 1), recorded(t))
	want := []string{`@timestamp=2026-11-29 20:40:08.401 @message=I1129 20:40:08.401200   31620 flags.go:64] FLAG: --controllers="[*,-csrsigning]"`}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestSigningRequest(t *testing.T) {
	query := strings.Replace(signingRequest, "csr-kdkll", "csr-t5vtf", 1)
	got := ask(t, query, recorded(t))
	if len(got) != 5 || !slices.IsSorted(got) || !strings.Contains(got[0], `"verb":"create"`) {
		t.Errorf("%.300q", got)
	}
	if got := ask(t, signingRequest, recorded(t)); len(got) != 0 {
		t.Errorf("%.300q", got)
	}
}

// The article reads these fields out of the events by eye.
func TestFieldsOfTheSigningRequest(t *testing.T) {
	got := ask(t, `filter responseObject.metadata.name = "csr-t5vtf" and ispresent(user.username)
 | sort @timestamp asc
 | display verb, user.username, user.uid, responseObject.spec.signerName, responseObject.spec.usages.0, responseObject.spec.usages.1,
   responseObject.status.conditions.0.reason, responseObject.status.conditions.0.message`, recorded(t))
	const request = ` responseObject.spec.signerName=kubernetes.io/kubelet-serving responseObject.spec.usages.0=digital signature responseObject.spec.usages.1=server auth`
	const approved = request + ` responseObject.status.conditions.0.reason=AutoApproved responseObject.status.conditions.0.message=Auto approving self kubelet server certificate after SubjectAccessReview.`
	want := []string{
		`verb=create user.username=system:node:ip-172-31-0-5.ec2.internal user.uid=aws-iam-authenticator:000000000000:AROAGDOFMW2ZRCEHY46SR` + request,
		`verb=update user.username=eks:certificate-controller` + approved,
		`verb=update user.username=eks:certificate-controller` + approved,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
