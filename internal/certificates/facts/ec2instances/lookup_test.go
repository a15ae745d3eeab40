// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstancesAreLookedUpByID(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	const profile = `<iamInstanceProfile><arn>arn:aws:iam::111122223333:instance-profile/nodes</arn><id>AIPA</id></iamInstanceProfile>`
	c := newCloud(instance{idA, nameA, "running", profile}, instance{idB, "", "terminated", ""})
	calls := 0
	l, err := NewLookup(t.Context(), LookupConfig{Region: "us-west-2", Endpoint: c.serve(t), OnCall: func() { calls++ }, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Describe(t.Context(), []string{idOld, idB, idA})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Described{
		idA: {ID: idA, PrivateDNSName: nameA, Profile: "arn:aws:iam::111122223333:instance-profile/nodes", Live: true},
		idB: {ID: idB},
	}
	if diff := cmp.Diff(want, got); diff != "" || calls != 1 {
		t.Errorf("%d calls (-want +got):\n%s", calls, diff)
	}
	c.set(func() {
		c.before = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			refuse(w, http.StatusForbidden, "UnauthorizedOperation")
			return true
		}
	})
	if _, err := l.Describe(t.Context(), []string{idA}); err == nil {
		t.Error("a refusal of EC2 is no answer")
	}
	if _, err := l.Describe(t.Context(), make([]string, maxValues+1)); err == nil {
		t.Error("too many were asked for at once")
	}
}
