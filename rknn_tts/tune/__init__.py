"""The tuner: windows and contexts swept under the gates, what each costs, and the ladder for given utterances."""
