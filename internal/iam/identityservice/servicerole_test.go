// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"muster.dev/muster/internal/iam/identityservice"
)

// A service of AWS may do with a role what the role's own policies allow, if its trust policy lets the service in for
// the resource that it acts for.
func TestRolesOfServices(t *testing.T) {
	w := newWorld(t, nil)
	const experiment, interrupt = "arn:aws:fis:" + region + ":" + account + ":experiment/EXP1", "ec2:SendSpotInstanceInterruptions"
	w.role("open", trusting("Service", "fis.amazonaws.com"))
	w.role("idle", trusting("Service", "fis.amazonaws.com"))
	w.role("machines", trusting("Service", "ec2.amazonaws.com"))
	w.role("narrow", strings.Replace(trusting("Service", "fis.amazonaws.com"), `"Action"`, `"Condition":{"StringEquals":{"aws:SourceAccount":"`+account+`"},"ArnLike":{"aws:SourceArn":"`+strings.Replace(experiment, "EXP1", "*", 1)+`"}},"Action"`, 1))
	for _, name := range []string{"open", "machines", "narrow"} {
		if _, err := w.iam(w.admin()).PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
			RoleName: &name, PolicyName: aws.String("p"), PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"` + interrupt + `","Resource":"arn:aws:ec2:*:*:instance/*","Condition":{"StringEquals":{"aws:ResourceTag/Team":"a"}}}]}`),
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		role, source, action, tag, says string
	}{
		"may":                            {"open", experiment, interrupt, "a", ""},
		"may, for an experiment":         {"narrow", experiment, interrupt, "a", ""},
		"for something else":             {"narrow", "arn:aws:fis:" + region + ":111111111111:experiment/EXP1", interrupt, "a", "does not let fis.amazonaws.com do sts:AssumeRole"},
		"an instance of others":          {"open", experiment, interrupt, "b", "not authorized to perform: " + interrupt},
		"another action":                 {"open", experiment, "ec2:TerminateInstances", "a", "not authorized to perform: ec2:TerminateInstances"},
		"no policy":                      {"idle", experiment, interrupt, "a", "not authorized to perform: " + interrupt},
		"a role of another service":      {"machines", experiment, interrupt, "a", "does not let fis.amazonaws.com do sts:AssumeRole"},
		"a role that there is not":       {"none", experiment, interrupt, "a", "there is no role"},
		"what is not the name of a role": {"../x", experiment, interrupt, "a", "role"},
	} {
		err := identityservice.CheckRole(t.Context(), w.service, identityservice.RoleOfService{
			Role: *roleARN(c.role), Service: "fis.amazonaws.com", Source: c.source, Action: c.action,
			Resource: "arn:aws:ec2:" + region + ":" + account + ":instance/i-1", Conditions: map[string][]string{"aws:ResourceTag/Team": {c.tag}},
		})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
