// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"muster.dev/muster/internal/aws/awsactions"
)

// Each action of STS and IAM has inputs and outputs of the table, and says what it is about where the list has it
// decided by resources or keys.
func TestActionsFitTheTables(t *testing.T) {
	if err := newWorld(t, nil).front.Check(); err != nil {
		t.Error(err)
	}
}

// The gate knows one action as unsigned, whatever is registered.
func TestOneActionIsUnsigned(t *testing.T) {
	w := newWorld(t, nil)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
	for _, service := range awsactions.Services() {
		for _, action := range service.Actions {
			name := service.Name + ":" + action.Name
			if _, err := w.service.Unsigned(r, service.Name, action.Name); (err == nil) != (name == "sts:AssumeRoleWithWebIdentity") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
