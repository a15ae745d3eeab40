// SPDX-License-Identifier: Apache-2.0

package awsactions

// notYet are the actions on the list that nobody has written. Whoever writes one takes its line out.
func notYet() map[string][]string {
	return map[string][]string{
		"eks": {
			"ActivateCertificateAuthority",
			"CreateCertificateAuthority",
			"DeleteCertificateAuthority",
			"DescribeCertificateAuthority",
			"ListCertificateAuthorities",
		},
		"eks-auth": {
			"AssumeRoleForPodIdentity",
		},
		"ec2": {},
		"autoscaling": {
			"CreateAutoScalingGroup",
			"DeleteAutoScalingGroup",
		},
		"sts": {
			"AssumeRoleWithWebIdentity",
		},
	}
}
