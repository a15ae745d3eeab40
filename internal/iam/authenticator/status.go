// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
)

// Reasons of the condition Accepted.
const (
	reasonMapped   = "Mapped"
	reasonInPart   = "MappedInPart"
	reasonUnused   = "NotUsed"
	reasonNotAsked = "ModeDoesNotAsk"
)

// accepted is the condition of an access entry of which this was made.
func accepted(entry *accessv1alpha1.AccessEntry, mode identity.Mode, m *made, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: accessv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: reasonMapped, ObservedGeneration: entry.Generation,
		Message: entry.Spec.PrincipalARN + " is mapped by this entry",
	}
	var unused, others []string
	for _, p := range m.problems[identity.SourceAccessEntry][entry.Name] {
		if p.Unused {
			unused = append(unused, inEntry(p))
		} else {
			others = append(others, inEntry(p))
		}
	}
	switch {
	case len(unused) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonUnused, strings.Join(append(unused, others...), "; ")
	case !mode.Asks(identity.SourceAccessEntry):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonNotAsked, "the authentication mode is "+string(mode)+", which asks no access entries; set mapping.mode of the authenticator"
	case len(others) > 0:
		c.Reason, c.Message = reasonInPart, strings.Join(others, "; ")
	}
	if trust, ok := m.trusts[entry.Name]; ok {
		c.Message += "; " + trust.String()
	}
	c.Message = clip(c.Message)
	conditions := append([]metav1.Condition(nil), entry.Status.Conditions...)
	c.LastTransitionTime = metav1.NewTime(now)
	apimeta.SetStatusCondition(&conditions, c) // keeps the time of a status that was so before
	return *apimeta.FindStatusCondition(conditions, c.Type)
}

// inEntry is a problem as it is told where the entry itself is shown.
func inEntry(p identity.Problem) string {
	text := p.Saw
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	if p.Fix != "" {
		text += "; " + p.Fix
	}
	return text
}

// clip keeps a message within what a condition may hold (32 KiB), and readable.
func clip(s string) string {
	const most = 2048
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// mappingStatus is that of an IAMIdentityMapping: its ARN as aws-iam-authenticator writes it there, so that the two do
// not quarrel in a cluster that has both for a while, and the id of the principal if it has come by. A mapping that is
// not used has none.
func mappingStatus(m *iamv1alpha1.IAMIdentityMapping, problems []identity.Problem, came visitor) iamv1alpha1.IAMIdentityMappingStatus {
	for _, p := range problems {
		if p.Unused {
			return iamv1alpha1.IAMIdentityMappingStatus{}
		}
	}
	parsed, err := arn.Parse(m.Spec.ARN)
	if err != nil { // a pattern, which is not the ARN of a principal
		return iamv1alpha1.IAMIdentityMappingStatus{}
	}
	canonical, err := parsed.Canonical()
	if err != nil {
		return iamv1alpha1.IAMIdentityMappingStatus{}
	}
	status := iamv1alpha1.IAMIdentityMappingStatus{CanonicalARN: strings.ToLower(canonical.String())}
	switch {
	case came.arn == m.Spec.ARN:
		status.UserID = came.id
	case m.Status.CanonicalARN == status.CanonicalARN: // not that of the principal that it named before
		status.UserID = m.Status.UserID
	}
	return status
}
