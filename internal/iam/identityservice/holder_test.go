// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/viewer"
)

// A holder has the rights that its policies give now, and none once its key ends.
func TestHolder(t *testing.T) {
	w := newWorld(t, nil)
	anna := w.user("anna")
	may := func(s signer) error {
		caller, err := identityservice.Holder(w.service, s.id, s.token)
		if err != nil {
			return err
		}
		return w.service.Authorize(caller, "iam:ListUsers", awsfront.Target{Resource: "*"})
	}
	says := func(what string, err error, want string) {
		t.Helper()
		if err == nil && want != "" || err != nil && (want == "" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	says("the administrator", may(w.admin()), "")
	says("somebody without policies", may(anna), "AccessDenied")
	says("nobody", may(signer{id: "AKIA0000000000000000"}), "InvalidClientTokenId")
	says("with a session token that is not one", may(signer{id: anna.id, token: "x"}), "InvalidClientTokenId")
	if _, err := w.iam(w.admin()).UpdateAccessKey(t.Context(), &iam.UpdateAccessKeyInput{UserName: aws.String("anna"), AccessKeyId: &anna.id, Status: iamtypes.StatusTypeInactive}); err != nil {
		t.Fatal(err)
	}
	says("a key that ended", may(anna), "InvalidClientTokenId")
}

// A token for a cluster is of no use at a console, and a console's at a cluster and at another console.
func TestTokensOfConsoles(t *testing.T) {
	w := newWorld(t, nil)
	here, other := viewer.Audience("a"), viewer.Audience("b")
	for _, made := range []string{demo, here, other} {
		host, query := w.sign(w.admin(), wish{cluster: made})
		for _, at := range []string{demo, here, other} {
			who, err := w.service.Verify(t.Context(), at, host, query)
			if good := err == nil && who.ARN != ""; good != (made == at) {
				t.Errorf("a token for %s at %s: %v", made, at, err)
			}
		}
	}
}
