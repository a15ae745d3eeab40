// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strings"
	"testing"
)

type told map[string]string

func (m told) Metadata(_ context.Context, path string) (string, error) {
	answer, ok := m[path]
	if !ok {
		return "", errors.New("404 Not Found for " + path)
	}
	return answer, nil
}

func TestNodeCertsTellsTheRole(t *testing.T) {
	t.Parallel()
	good := told{
		"iam/security-credentials/": "muster-node\n", "instance-id": "i-0123456789abcdef0",
		"iam/security-credentials/muster-node": `{"Code":"Success","AccessKeyId":"ASIA1","SecretAccessKey":"s3cret","Token":"s3cret","Expiration":"2026-11-21T22:02:15Z"}`,
	}
	for name, test := range map[string]struct {
		from told
		want string
	}{
		"all":            {good, "by IAM role muster-node, session i-0123456789abcdef0, credentials until 2026-11-21T22:02:15Z."},
		"no role":        {told{}, "does not tell which role: 404 Not Found for iam/security-credentials/"},
		"no credentials": {told{"iam/security-credentials/": "r", "instance-id": "i", "iam/security-credentials/r": "s3cret"}, "the credentials of role r cannot be read"},
	} {
		if got := clientByRole(t.Context(), test.from); !strings.HasSuffix(got, test.want) || strings.Contains(got, "s3cret") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
