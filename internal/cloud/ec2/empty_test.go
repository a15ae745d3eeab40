// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
)

// given fills the parameters that an action requires.
func putRequired(form url.Values, prefix string, shape *awsshape.Shape, value string) {
	for _, m := range shape.Members {
		if m.Required {
			putParameter(form, prefix+m.In, m, value)
		}
	}
}

func putParameter(form url.Values, name string, m *awsshape.Member, value string) {
	shape := m.Shape
	if shape.Kind == awsshape.List {
		shape, name = shape.Item, name+".1"
	}
	switch shape.Kind {
	case awsshape.String:
		form.Set(name, value)
	case awsshape.Structure:
		putRequired(form, name+".", shape, value)
	case awsshape.Boolean:
		form.Set(name, "false")
	case awsshape.Integer, awsshape.Long:
		form.Set(name, "1")
	default:
	}
}

// Parameters without a value are refused, and are no fault of the service's.
func TestParametersWithoutAValue(t *testing.T) {
	w := runWorld(t)
	for _, op := range awstable.Service("ec2").Operations {
		if op.Input == nil {
			continue
		}
		for _, m := range op.Input.Members {
			for _, others := range []string{"", "x"} {
				form := url.Values{"Version": {"2016-11-15"}, "Action": {op.Name}}
				putRequired(form, "", op.Input, others)
				putParameter(form, m.In, m, "")
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(form.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
				answer := httptest.NewRecorder()
				w.handler.ServeHTTP(answer, r)
				if text := answer.Body.String(); strings.Contains(text, "InternalError") {
					t.Errorf("%s: %s", form.Encode(), text)
				}
			}
		}
	}
}
