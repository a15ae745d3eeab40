// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"

	"muster.dev/muster/internal/iam/keyservice"
)

// Refused takes a report of a token that a cluster's authenticator refused, and tells it of the instance whose session
// it is. An access key's id is not a secret and proves nothing: the session token must be one that was sealed here,
// with that id, for that instance. Its holder got it from the instance, or was sent a token of the instance; that its
// secret key signed the refused token is not known. All other reports are about nobody, and are dropped.
func (s *Service) Refused(_ context.Context, cluster string, r keyservice.Refused) error {
	if s.config.Refused == nil {
		return nil
	}
	session, err := s.config.Sealer.Open(r.AccessKeyID, r.SessionToken)
	if err != nil || session.Instance == "" {
		return nil //nolint:nilerr // a session that was not sealed here is about nobody, and not a fault
	}
	if _, ok := s.config.Instances.Lookup(session.Instance); ok {
		s.config.Refused(cluster, session.Instance, r)
	}
	return nil
}
