"""Design a mechanism on real streets and write it for a phone: small, certified as stored, signed."""

import metricdp as mdp
from metricdp.places import bundled_roads

roads = bundled_roads(nodes=60)
mechanism = mdp.optimal(mdp.Problem(roads, mdp.epsilon_for(2, 0.2)), gap=0.01)
mdp.artifacts.create_keys("me")  # me.key signs, me.pub goes into the app
mdp.save(
    mdp.quantised(mechanism),
    "porto.mdp",
    licence="Streets © OpenStreetMap contributors, ODbL 1.0",
    key="me.key",
)
again = mdp.load("porto.mdp", trusted="me.pub")  # checksum, signature and proof, all checked again
print(again.guarantee)
print(again.certificate.note)
