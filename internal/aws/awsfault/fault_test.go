// SPDX-License-Identifier: Apache-2.0

package awsfault

import "testing"

func TestStatus(t *testing.T) {
	e := Errorf("InvalidParameterValue", "no %s", "vpc")
	if e.HTTPStatus() != 400 || e.WithStatus(404).HTTPStatus() != 404 || e.Error() != "InvalidParameterValue: no vpc" {
		t.Errorf("%v has status %d", e, e.HTTPStatus())
	}
}
