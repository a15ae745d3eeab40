// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"muster.dev/muster/internal/iam/awsquery"
	"muster.dev/muster/internal/iam/iam"
)

type summaryOut struct {
	SummaryMap summary
}

// summary is a map on the wire: entries of key and value.
type summary struct {
	Entries []summaryEntry `xml:"entry"`
}

type summaryEntry struct {
	Key   string `xml:"key"`
	Value int    `xml:"value"`
}

type listAliasesIn struct {
	Marker   *string
	MaxItems *int32
}

type listAliasesOut struct {
	awsquery.Page
	AccountAliases awsquery.List[string]
}

type aliasIn struct {
	AccountAlias string `query:",required"`
}

func (s *Service) registerAccount(server *awsquery.Server) {
	api := awsquery.IAM()
	register(s, server, api, "GetAccountSummary", reads, func(*call, none) (target, error) { return anything(), nil }, s.summary)
	register(s, server, api, "ListAccountAliases", reads, func(*call, listAliasesIn) (target, error) { return anything(), nil },
		func(c *call, in listAliasesIn) (*listAliasesOut, error) {
			var aliases []string
			if a, ok := c.state.Account(c.account); ok && a.Alias != "" {
				aliases = []string{a.Alias}
			}
			aliases, page, err := awsquery.PageOf(aliases, func(alias string) string { return alias }, c.markers, in.Marker, in.MaxItems)
			return &listAliasesOut{Page: page, AccountAliases: awsquery.ListOf(aliases)}, err
		})
	register(s, server, api, "CreateAccountAlias", writes, func(*call, aliasIn) (target, error) { return anything(), nil }, s.setAlias)
	register(s, server, api, "DeleteAccountAlias", writes, func(*call, aliasIn) (target, error) { return anything(), nil }, s.deleteAlias)
}

func (s *Service) summary(c *call, _ none) (*summaryOut, error) {
	return &summaryOut{summary{[]summaryEntry{
		{"Users", len(c.state.Users(c.account))},
		{"Roles", len(c.state.Roles(c.account))},
		{"InstanceProfiles", len(c.state.Profiles(c.account))},
		{"Policies", len(c.state.Policies(c.account))},
		{"Groups", 0},
		{"AccountAccessKeysPresent", 0},
		{"AccountMFAEnabled", 0},
		{"AccessKeysPerUserQuota", iam.MaxKeysPerUser},
		{"AttachedPoliciesPerUserQuota", iam.MaxAttached},
		{"AttachedPoliciesPerRoleQuota", iam.MaxAttached},
	}}}, nil
}

func (s *Service) setAlias(c *call, in aliasIn) (*none, error) {
	if err := iam.CheckAlias(in.AccountAlias); err != nil {
		return nil, err
	}
	for _, other := range c.state.accounts {
		if other.ID != c.account && other.Alias == in.AccountAlias {
			return nil, awsquery.Errorf(awsquery.EntityAlreadyExists, "The account alias %s already exists.", in.AccountAlias)
		}
	}
	a, ok := c.state.Account(c.account)
	if !ok {
		return nil, awsquery.Errorf(awsquery.NoSuchEntity, "there is no account %s", c.account)
	}
	a.Alias = in.AccountAlias
	return nil, s.config.Store.Update(c.ctx, c.state, a)
}

func (s *Service) deleteAlias(c *call, in aliasIn) (*none, error) {
	a, ok := c.state.Account(c.account)
	if !ok || a.Alias != in.AccountAlias {
		return nil, awsquery.Errorf(awsquery.NoSuchEntity, "The account alias %.63s cannot be found.", in.AccountAlias)
	}
	a.Alias = ""
	return nil, s.config.Store.Update(c.ctx, c.state, a)
}
