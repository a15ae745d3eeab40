// SPDX-License-Identifier: Apache-2.0

package authcheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
)

// sourceServiceAccount is the source of problems with the annotations by which service accounts have IAM roles (IRSA).
const sourceServiceAccount identity.Source = "ServiceAccount"

// The annotations, and the least and most that a token lasts, in seconds: the API server issues none for less
// (pkg/apis/authentication/validation), and EKS's webhook none for more.
const (
	annotationRole     = "eks.amazonaws.com/role-arn"
	annotationLifetime = "eks.amazonaws.com/token-expiration"
	annotationRegional = "eks.amazonaws.com/sts-regional-endpoints"
	minLifetime        = 600
	maxLifetime        = 86400
)

// AddServiceAccounts checks the annotations of service accounts that name IAM roles for their pods. Others count as no
// entries.
func (e *Entries) AddServiceAccounts(all []corev1.ServiceAccount) {
	for i := range all {
		a := &all[i]
		role, ok := a.Annotations[annotationRole]
		if !ok || a.DeletionTimestamp != nil {
			continue
		}
		e.serviceAccounts++
		wrong := func(annotation, saw, fix string, unused bool) {
			e.problems = append(e.problems, identity.Problem{
				Source: sourceServiceAccount, Entry: a.Namespace + "/" + a.Name, Field: "metadata.annotations[" + annotation + "]", Saw: saw, Fix: fix, Unused: unused,
			})
		}
		if parsed, err := arn.Parse(role); err != nil {
			wrong(annotationRole, fmt.Sprintf("is not an ARN: %.200q", role), "give the ARN of a role, as aws iam get-role says", true)
		} else if _, _, isRole := parsed.Role(); !isRole {
			wrong(annotationRole, fmt.Sprintf("is not the ARN of a role: %.200q", role), "give that of the role, as aws iam get-role says", true)
		}
		if text, ok := a.Annotations[annotationLifetime]; ok {
			if seconds, err := strconv.Atoi(text); err != nil || seconds < minLifetime || seconds > maxLifetime {
				wrong(annotationLifetime, fmt.Sprintf("is %.40q", text), fmt.Sprintf("write a number of seconds from %d to %d", minLifetime, maxLifetime), true)
			}
		}
		if text, ok := a.Annotations[annotationRegional]; ok && !slices.Contains([]string{"true", "false"}, strings.ToLower(text)) {
			wrong(annotationRegional, fmt.Sprintf("is %.40q", text), "write true or false", true)
		}
	}
}
