// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

type summaryOut struct{ SummaryMap []awsshape.Entry }

type listAliasesIn struct {
	Marker   *string
	MaxItems *int32
}

type listAliasesOut struct {
	listPage
	AccountAliases []string
}

type aliasIn struct {
	AccountAlias string
}

func (s *Service) registerAccount(front *awsfront.Front) {
	register(s, front, apiIAM, "GetAccountSummary", reads, func(*call, none) (target, error) { return anything(), nil }, s.summary)
	register(s, front, apiIAM, "ListAccountAliases", reads, func(*call, listAliasesIn) (target, error) { return anything(), nil },
		func(c *call, in listAliasesIn) (*listAliasesOut, error) {
			var aliases []string
			if a, ok := c.state.Account(c.account); ok && a.Alias != "" {
				aliases = []string{a.Alias}
			}
			aliases, page, err := pageBy(aliases, func(alias string) string { return alias }, c.markers, in.Marker, in.MaxItems)
			return &listAliasesOut{listPage: page, AccountAliases: aliases}, err
		})
	register(s, front, apiIAM, "CreateAccountAlias", writes, func(*call, aliasIn) (target, error) { return anything(), nil }, s.setAlias)
	register(s, front, apiIAM, "DeleteAccountAlias", writes, func(*call, aliasIn) (target, error) { return anything(), nil }, s.deleteAlias)
}

func (s *Service) summary(c *call, _ none) (*summaryOut, error) {
	return &summaryOut{[]awsshape.Entry{
		{Key: "Users", Value: len(c.state.Users(c.account))},
		{Key: "Roles", Value: len(c.state.Roles(c.account))},
		{Key: "InstanceProfiles", Value: len(c.state.Profiles(c.account))},
		{Key: "Policies", Value: len(c.state.Policies(c.account))},
		{Key: "Groups", Value: 0},
		{Key: "AccountAccessKeysPresent", Value: 0},
		{Key: "AccountMFAEnabled", Value: 0},
		{Key: "AccessKeysPerUserQuota", Value: iam.MaxKeysPerUser},
		{Key: "AttachedPoliciesPerUserQuota", Value: iam.MaxAttached},
		{Key: "AttachedPoliciesPerRoleQuota", Value: iam.MaxAttached},
	}}, nil
}

func (s *Service) setAlias(c *call, in aliasIn) (*none, error) {
	if err := iam.CheckAlias(in.AccountAlias); err != nil {
		return nil, err
	}
	for _, other := range c.state.accounts {
		if other.ID != c.account && other.Alias == in.AccountAlias {
			return nil, iamfault.Errorf(iamfault.EntityAlreadyExists, "The account alias %s already exists.", in.AccountAlias)
		}
	}
	a, ok := c.state.Account(c.account)
	if !ok {
		return nil, iamfault.Errorf(iamfault.NoSuchEntity, "there is no account %s", c.account)
	}
	a.Alias = in.AccountAlias
	return nil, s.config.Store.Update(c.ctx, c.state, a)
}

func (s *Service) deleteAlias(c *call, in aliasIn) (*none, error) {
	a, ok := c.state.Account(c.account)
	if !ok || a.Alias != in.AccountAlias {
		return nil, iamfault.Errorf(iamfault.NoSuchEntity, "The account alias %.63s cannot be found.", in.AccountAlias)
	}
	a.Alias = ""
	return nil, s.config.Store.Update(c.ctx, c.state, a)
}
