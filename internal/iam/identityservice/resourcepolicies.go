// SPDX-License-Identifier: Apache-2.0

package identityservice

import "muster.dev/muster/internal/iam/iampolicy"

// BindPolicy reads the policy of a resource, and returns it with the unique ids of the users and roles that it names, in
// the place of their names: a user who is made again under an old name is not meant. An error is an
// *iampolicy.Malformed, or says that the account cannot be read.
func BindPolicy(s *Service, text string) (string, error) {
	state, err := s.config.Store.State()
	if err != nil {
		return "", away(err)
	}
	document, err := iampolicy.Parse(iampolicy.OfResource, text)
	if err != nil {
		return "", err
	}
	if document, err = document.Bind(state); err != nil {
		return "", err
	}
	return document.Text()
}

// ShowPolicy is the reverse of BindPolicy, for people to read: ids whose owner there still is become names.
func ShowPolicy(s *Service, text string) string {
	state, err := s.config.Store.State()
	if err != nil {
		return text
	}
	document, err := iampolicy.Parse(iampolicy.OfResource, text)
	if err != nil {
		return text
	}
	shown, err := document.Shown(state).Text()
	if err != nil {
		return text
	}
	return shown
}
