// SPDX-License-Identifier: Apache-2.0

package identity

// The keys of what else is said of a user, which are aws-iam-authenticator's.
const (
	ExtraARN                = "arn"
	ExtraCanonicalARN       = "canonicalArn"
	ExtraSessionName        = "sessionName"
	ExtraAccessKeyID        = "accessKeyId"
	ExtraPrincipalID        = "principalId"
	ExtraPrincipalQualified = "sigs.k8s.io/aws-iam-authenticator/principalId"
)

const uidPrefix = "aws-iam-authenticator:"

// user is the answer for a principal that is mapped.
func (t Table) user(p Principal, name string, groups []string) User {
	if t.scrubbed[p.Account] {
		return User{Name: name, UID: uidPrefix + "administrative:" + name, Groups: groups}
	}
	values := &[...]string{p.ARN.String(), p.CanonicalARN.String(), p.SessionName, p.AccessKeyID, p.UserID}
	return User{
		Name:   name,
		UID:    uidPrefix + p.Account + ":" + p.UserID,
		Groups: groups,
		Extra: map[string][]string{
			ExtraARN:                values[0:1:1],
			ExtraCanonicalARN:       values[1:2:2],
			ExtraSessionName:        values[2:3:3],
			ExtraAccessKeyID:        values[3:4:4],
			ExtraPrincipalID:        values[4:5:5],
			ExtraPrincipalQualified: values[4:5:5],
		},
	}
}
