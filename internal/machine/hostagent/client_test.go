// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"muster.dev/muster/internal/machine/machine"
)

// A host that is heard saying that its caller went is not believed to have refused: the caller is told that it went.
func TestRefusalOfACallerThatWent(t *testing.T) {
	t.Parallel()
	answer := func(err error) *http.Response {
		raw, encoded := json.Marshal(faultOf(err))
		if encoded != nil {
			t.Fatal(encoded)
		}
		return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(raw))}
	}
	if err := refusal(t.Context(), answer(machine.ErrSubnetFull)); !errors.Is(err, machine.ErrSubnetFull) {
		t.Errorf("of a caller that waits: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := refusal(gone, answer(context.Canceled)); !errors.Is(err, context.Canceled) {
		t.Errorf("of one that went: %v", err)
	}
}
