// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"errors"
	"strings"

	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iampolicy"
)

// denied is nil for an Allow, and else says no as AWS does.
func denied(who, action string, t target, d iampolicy.Decision) error {
	if d.Verdict == iampolicy.Allow {
		return nil
	}
	return iamfault.Because(errors.New(d.Policy+": "+d.Reason), iamfault.AccessDenied, "User: "+who+" is not authorized to perform: "+action+onResource(action, t)+because(action, d))
}

// onResource is what a refusal says of the resource. EC2 and Auto Scaling say nothing where it is any, and EFS never
// names it.
func onResource(action string, t target) string {
	service, _, _ := strings.Cut(action, ":")
	switch {
	case service == "elasticfilesystem":
		return " on the specified resource"
	case t.resource == "*" && (service == "ec2" || service == "autoscaling"):
		return ""
	case t.shown != "":
		return " on resource: " + t.shown
	}
	return " on resource: " + t.resource
}

// because is what a refusal says of the policies. The ARN of one that denies is told, if it has one. EFS tells nothing.
func because(action string, d iampolicy.Decision) string {
	if strings.HasPrefix(action, "elasticfilesystem:") {
		return ""
	}
	article, kind := "an", "identity-based policy"
	switch d.By {
	case iampolicy.Boundary:
		article, kind = "a", "permissions boundary"
	case iampolicy.SessionLayer:
		article, kind = "a", "session policy"
	case iampolicy.ResourceLayer:
		article, kind = "a", "resource-based policy"
	case iampolicy.Identity, iampolicy.TrustLayer:
	}
	if d.Verdict != iampolicy.Deny {
		return " because no " + kind + " allows the " + action + " action"
	}
	why := " with an explicit deny in " + article + " " + kind
	if strings.HasPrefix(d.Policy, "arn:") {
		why += ": " + d.Policy
	}
	return why
}
