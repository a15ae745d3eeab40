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
	told := func(ctx context.Context, said error) error {
		raw, err := json.Marshal(faultOf(said))
		if err != nil {
			t.Fatal(err)
		}
		answer := &http.Response{StatusCode: http.StatusConflict, Body: io.NopCloser(bytes.NewReader(raw))}
		defer func() { _ = answer.Body.Close() }()
		return refusal(ctx, answer)
	}
	if err := told(t.Context(), machine.ErrSubnetFull); !errors.Is(err, machine.ErrSubnetFull) {
		t.Errorf("of a caller that waits: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := told(gone, context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("of one that went: %v", err)
	}
}
