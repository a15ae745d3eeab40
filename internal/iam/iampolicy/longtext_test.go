// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/iampolicy"
)

// White space does not count against the limits of documents, inside of texts either: reading one must cost no more
// than its length.
func TestLongTextsAreReadAtOnce(t *testing.T) {
	spaces := strings.Repeat(" ", 130_000)
	for what, text := range map[string]string{
		"resource":  `{"Statement":{"Effect":"Allow","Action":"iam:GetUser","Resource":"arn:aws:iam:::` + spaces + `x"}}`,
		"condition": `{"Statement":{"Effect":"Allow","Action":"iam:GetUser","Resource":"*","Condition":{"StringLike":{"aws:UserAgent":"` + spaces + `"}}}}`,
	} {
		read := make(chan error, 1)
		go func() {
			_, err := iampolicy.Parse(iampolicy.Managed, text)
			read <- err
		}()
		select {
		case err := <-read:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: a document of %d bytes is not read after five seconds", what, len(text))
		}
	}
}
