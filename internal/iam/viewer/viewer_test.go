// SPDX-License-Identifier: Apache-2.0

package viewer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/iam/viewer"
)

func TestObject(t *testing.T) {
	got, err := viewer.Request{Input: []byte(`{"n":2,"of":{"on":true},"all":["a",{"m":1}],"text":"t"}`)}.Object()
	want := awsshape.Object{"n": int64(2), "of": awsshape.Object{"on": true}, "all": []any{"a", awsshape.Object{"m": int64(1)}}, "text": "t"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"", "[]", `{"n":1.5}`, `{"a":[1e99]}`} {
		if _, err := (viewer.Request{Input: []byte(text)}).Object(); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// No name of a cluster is an audience.
func TestAudience(t *testing.T) {
	for text, want := range map[string]bool{viewer.Audience("a"): true, viewer.Audience(""): false, "muster-console": false, "home": false} {
		if viewer.IsAudience(text) != want {
			t.Errorf("%q", text)
		}
	}
}
