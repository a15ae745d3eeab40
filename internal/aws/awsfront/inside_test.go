// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

const via = "cloudformation.amazonaws.com"

func TestInside(t *testing.T) {
	w := newWorld(t)
	w.gate.may = func(_, _ string, conditions map[string][]string) error {
		if !slices.Equal(conditions["aws:calledvia"], []string{via}) || !slices.Equal(conditions["aws:viaawsservice"], []string{"true"}) {
			t.Errorf("conditions %v", conditions)
		}
		return nil
	}
	got, err := w.front.Do(t.Context(), Inside{Caller: caller{"a"}, Via: via, Service: "eks", Action: "DescribeCluster", Input: awsshape.Object{"name": "one"}})
	if diff := cmp.Diff(awsshape.Object{"cluster": awsshape.Object{"name": "one", "arn": "arn:one"}}, got); err != nil || diff != "" {
		t.Errorf("%v, - want + got:\n%s", err, diff)
	}
	asked := "eks:DescribeCluster cluster/one [aws:calledvia aws:calledviafirst aws:calledvialast aws:resourcetag/team aws:viaawsservice]"
	if !slices.Equal(w.gate.asked, []string{asked}) {
		t.Errorf("asked %q", w.gate.asked)
	}
	if line := w.told.lines[0]; line["via"] != via || line["action"] != "DescribeCluster" || line["outcome"] != "ok" || line["resource"] != "cluster/one" || line["request_id"] == "" {
		t.Errorf("told %v", line)
	}
	w.gate.may, w.gate.asked = nil, nil
	if _, err := w.front.Do(t.Context(), Inside{Caller: caller{"a"}, Service: "eks", Action: "DescribeCluster", Input: awsshape.Object{"name": "one"}}); err != nil {
		t.Error(err)
	}
	if asked := "eks:DescribeCluster cluster/one [aws:resourcetag/team]"; !slices.Equal(w.gate.asked, []string{asked}) {
		t.Errorf("a role of a service is called via something: %q", w.gate.asked)
	}
}

func TestInsideRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		service, action string
		input           awsshape.Object
		denies          bool
		code, has       string
	}{
		"denied":                           {"eks", "DescribeCluster", awsshape.Object{"name": "panic"}, true, "AccessDeniedException", "no rights"},
		"a fault of the action":            {"eks", "DescribeCluster", awsshape.Object{"name": "none"}, false, "ResourceNotFoundException", "No cluster found"},
		"a panic":                          {"eks", "DescribeCluster", awsshape.Object{"name": "panic"}, false, "ServerException", "the log"},
		"an inner error":                   {"eks", "DescribeCluster", awsshape.Object{"name": "broken"}, false, "ServerException", "the log"},
		"a required member":                {"eks", "DescribeCluster", awsshape.Object{}, false, "ValidationException", "eks:DescribeCluster needs name"},
		"a member that the action ignores": {"eks", "CreateCluster", awsshape.Object{"name": "x", "roleArn": "r", "resourcesVpcConfig": awsshape.Object{}}, false, "InvalidParameterException", "does not support roleArn"},
		"a member that there is not":       {"eks", "DescribeCluster", awsshape.Object{"name": "one", "Name": "two"}, false, "ValidationException", "eks:DescribeCluster does not take Name"},
		"refused by the list":              {"eks", "CreateCapability", awsshape.Object{}, false, "InvalidRequestException", "Muster has no EKS capabilities"},
		"listed, and not registered":       {"eks", "ListClusters", awsshape.Object{}, false, "ServerException", ""},
		"no such action":                   {"eks", "Nothing", awsshape.Object{}, false, "UnknownOperationException", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.denies {
				w.gate.may = func(string, string, map[string][]string) error { return refusedBy("AccessDenied", "no rights") }
			}
			got, err := w.front.Do(t.Context(), Inside{Caller: caller{"a"}, Via: via, Service: c.service, Action: c.action, Input: c.input})
			var fault *awsfault.Error
			if got != nil || !errors.As(err, &fault) || fault.Code != c.code || !strings.Contains(fault.Message, c.has) {
				t.Errorf("%v, %v", got, err)
			}
			if w.told.lines[0]["outcome"] != c.code {
				t.Errorf("told %v", w.told.lines)
			}
		})
	}
	w := newWorld(t)
	if _, err := w.front.Do(t.Context(), Inside{Service: "eks", Action: "DescribeCluster"}); err == nil {
		t.Error("a request without a caller is answered")
	}
	if _, err := w.front.Do(t.Context(), Inside{Caller: caller{"a"}, Service: "s3", Action: "GetObject"}); err == nil {
		t.Error("a request of a service that is not here is answered")
	}
}
