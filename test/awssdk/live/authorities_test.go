// SPDX-License-Identifier: Apache-2.0

package live

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// authorityActions are tests of the certificate authorities of the cluster that is there. Their effects take minutes:
// TestEKSOperationsHaveEffects has them.
func authorityActions() []action {
	cluster := aws.String(first)
	return []action{
		{"ListCertificateAuthorities", func(w *world) {
			out := need(w.eks.ListCertificateAuthorities(w.ctx(), &eks.ListCertificateAuthoritiesInput{ClusterName: cluster}))
			w.has(out, "CertificateAuthorities[].Id", "CertificateAuthorities[].SigningStatus", "CertificateAuthorities[].DistributionStatus", "CertificateAuthorities[].CreatedAt")
			if len(out.CertificateAuthorities) != 1 || out.CertificateAuthorities[0].SigningStatus != types.CertificateAuthoritySigningStatusInUse {
				w.Errorf("%+v", out.CertificateAuthorities)
			}
			w.notes["authority"] = *out.CertificateAuthorities[0].Id
		}},
		{"DescribeCertificateAuthority", func(w *world) {
			out := need(w.eks.DescribeCertificateAuthority(w.ctx(), &eks.DescribeCertificateAuthorityInput{ClusterName: cluster, CertificateAuthorityId: aws.String(w.notes["authority"])}))
			w.has(out, "CertificateAuthority.Id", "CertificateAuthority.Data", "CertificateAuthority.CreatedAt", "CertificateAuthority.Validity.NotBefore", "CertificateAuthority.Validity.NotAfter")
			_, err := w.eks.DescribeCertificateAuthority(w.ctx(), &eks.DescribeCertificateAuthorityInput{ClusterName: cluster, CertificateAuthorityId: aws.String("none")})
			w.refused("ResourceNotFoundException", err)
		}},
		{"ActivateCertificateAuthority", func(w *world) {
			_, err := w.eks.ActivateCertificateAuthority(w.ctx(), &eks.ActivateCertificateAuthorityInput{ClusterName: cluster, CertificateAuthorityId: aws.String(w.notes["authority"])})
			w.refused("InvalidRequestException", err)
		}},
		{"DeleteCertificateAuthority", func(w *world) {
			_, err := w.eks.DeleteCertificateAuthority(w.ctx(), &eks.DeleteCertificateAuthorityInput{ClusterName: cluster, CertificateAuthorityId: aws.String(w.notes["authority"])})
			w.refused("InvalidRequestException", err)
		}},
		{"CreateCertificateAuthority", func(w *world) {
			out := need(w.eks.CreateCertificateAuthority(w.ctx(), &eks.CreateCertificateAuthorityInput{ClusterName: cluster, ClientRequestToken: aws.String("live")}))
			again := need(w.eks.CreateCertificateAuthority(w.ctx(), &eks.CreateCertificateAuthorityInput{ClusterName: cluster, ClientRequestToken: aws.String("live")}))
			w.has(out, "Update.Id", "Update.Type", "CertificateAuthority.Id", "CertificateAuthority.SigningStatus", "CertificateAuthority.DistributionStatus")
			if *again.Update.Id != *out.Update.Id || *again.CertificateAuthority.Id != *out.CertificateAuthority.Id {
				w.Errorf("%+v, and sent again %+v", out, again)
			}
			_, err := w.eks.CreateCertificateAuthority(w.ctx(), &eks.CreateCertificateAuthorityInput{ClusterName: cluster})
			w.refused("ResourceInUseException", err)
			need(w.eks.DescribeCertificateAuthority(w.ctx(), &eks.DescribeCertificateAuthorityInput{ClusterName: cluster, CertificateAuthorityId: out.CertificateAuthority.Id}))
		}},
	}
}
