// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"errors"
	"testing"

	"muster.dev/muster/internal/aws/awsfault"
)

func TestAnswers(t *testing.T) {
	if err := Would(false); err != nil {
		t.Errorf("a request that is meant: %v", err)
	}
	for _, c := range []struct {
		err    error
		code   string
		status int
	}{
		{Would(true), "DryRunOperation", 412},
	} {
		var fault *awsfault.Error
		if !errors.As(c.err, &fault) || fault.Code != c.code || fault.HTTPStatus() != c.status {
			t.Errorf("%v, want %s with %d", c.err, c.code, c.status)
		}
	}
}
