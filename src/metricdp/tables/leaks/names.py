"""What the name of a column says about it, in a dozen languages: a place, a time, a person, or how somebody moved.

A name is cut into words (`pickupLatitude`, `home_addr`, `Länge (Grad)`), and words are looked up whole: `plate` is no
`lat`. The last word decides what a name counts: a `passenger_count` or a `city_tax` says nothing about anybody.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise
from typing import Literal

Kind = Literal["place", "time", "person", "motion"]

PLACE = """
x y lat lats latitude latitudes lati lon lons long lng lngs longitude longitudes longi latlon latlng lonlat lnglat
latlong gps
coord coords coordinate coordinates koordinate koordinaten coordenada coordenadas coordonnees coordinate coordinata
geo geom geometry geometrie geometria geography geog geohash geocode geopoint geojson geolocation wkt wkb ewkt ewkb
h3 s2 s2cell quadkey quadbin pluscode olc what3words w3w mgrs utm easting northing maidenhead geonames osmid placeid
shape the_geom
address addresses addr adr adress adresse adresses adressen anschrift direccion domicilio endereco indirizzo adres
adresa
street streets strasse strassen rue calle rua via ulica ulice straat gata gatan vej avenue avenida piazza
house housenumber hausnummer hausnr apartment
city town village ville ciudad cidade citta stadt ort gemeinde commune comune miasto mesto stad plaats kommune
municipality county district arrondissement barrio bairro quartier bezirk stadtteil kiez borough neighborhood
neighbourhood
suburb ward parish province provincia provinz region state prefecture
zip zipcode postcode postal postalcode plz postleitzahl cep codepostal pincode postnummer kodpocztowy
place places poi pois venue venues venueid site stop station halt haltestelle bahnhof estacion gare stazione depot
stand
location locations loc locale localisation ubicacion localizacao posizione position pos standort lieu lugar luogo
miejsce
pickup dropoff origin destination origen destino origine destinazione start_point end_point
home work workplace office heimat wohnort residence domicile
cell cellid cgi lac tac tower antenna antenne celda beacon ssid bssid wifi accesspoint
tract blockgroup fips nuts zone zones zona zonen taz locationid
ip ips ipv4 ipv6 ipaddress ipaddr
breite breitengrad geobreite laenge laengengrad geolaenge latitud longitud latitudine longitudine
breedtegraad lengtegraad szerokosc dlugosc breddgrad laengdgrad breddegrad laengdegrad enlem boylam lintang bujur
широта долгота адрес улица город место индекс 纬度 经度 緯度 経度 經度 地址 住所 位置 地点 城市 위도 경도 주소
"""
TIME = """
time times timestamp timestamps datetime date dates dt ts t day hour hours minutes second seconds millis epoch
unixtime when
clock created updated recorded measured observed departure arrival began ended begin
zeit zeitpunkt zeitstempel uhrzeit datum stunde sekunde heure horodatage jour fecha hora dia tiempo ora
giorno tempo tijd tijdstip uur godzina czas czasu dzien tid tidpunkt dato klokke saat tarih zaman waktu tanggal
время дата час 时间 日期 時刻 時間 日時 시간 날짜
"""
PERSON = """
person persons persona personne people user users uid userid username client clients customer customers customerid
kunde kunden cliente utente
usuario utilisateur gebruiker subject patient respondent participant member employee driver driverid rider passenger
owner
account accountid login nick nickname handle
name names firstname lastname surname forename fullname vorname nachname nom prenom nombre apellido apellidos nome
cognome sobrenome naam imie nazwisko
phone telephone tel telefon telefono telefone mobile mobil msisdn cell_phone handy
mail email mails emails
device deviceid imei imsi iccid idfa gaid aaid adid mac macaddress androidid udid serial
vehicle vehicles vehicleid fahrzeug taxi taxis cab cabs
plate plates licenseplate licence license registration matricula targa kennzeichen vin medallion
ssn passport nid nif nie cpf dni steuernummer taxid insurance iban card cardnumber
birth birthday birthdate dob born geburtsdatum geburtstag nacimiento naissance nascita age_exact
cookie session sessionid fingerprint token hash uuid guid
имя фамилия телефон 姓名 电话 名前 氏名 電話 이름 전화
"""
MOTION = """
speed speeds velocity velocities geschwindigkeit vitesse velocidad velocidade velocita snelheid predkosc
heading headings bearing bearings course azimuth azimut kurs cap_degrees direction richtung
altitude altitudes alt elevation hoehe height_m altura
accuracy hdop vdop pdop dist distance distances distanz distancia distanza mileage odometer kilometerstand route path
track
"""
COUNTED = """
count counts cnt anzahl nombre_de num_of tax taxes fee fees surcharge price prices cost costs amount amt fare rate
ratio share pct percent percentage type types typ kind class klass category kategorie flag status score rating version
unit units mode color colour split label paid toll tolls tip offset zone_type length width height size weight source
method
"""
ROW_IDS = """
id ids identifier identifiers identifiant identificador identificativo identifikator kennung kennnummer
идентификатор 编号
"""  # alone; of a product_id or a vendor_id the other word says what it is about
TRIP_IDS = """
tripid rideid journeyid tourid orderid bookingid transactionid recordid objectid caseid visitid checkinid sampleid
"""
BIRTH = "birth birthday birthdate dob born geburtsdatum geburtstag nacimiento naissance nascita"
LONG = 6  # words of so many letters are also found inside longer ones: `startlatitude`, `homeaddress`


def kind_by_name(name: str) -> Kind | None:
    """Return what a column is about by its name, or None where the name says nothing."""
    words = words_of(name)
    if not words or words[-1] in COUNTED.split():
        return None
    known = _known()
    joined = ["".join(pair) for pair in pairwise(words)] + ["".join(words)]
    if {*words, *joined} & {*BIRTH.split(), *TRIP_IDS.split()} or set(words) <= set(ROW_IDS.split()):
        return "person"
    found = {known[word] for word in (*words, *joined) if word in known}
    found |= {kind for word in words if len(word) > LONG for long, kind in _long() if long in word}
    if "time" in found and "place" in found and known.get(words[-1]) == "time":
        return "time"
    return next((kind for kind in ("place", "time", "person", "motion") if kind in found), None)


def words_of(name: str) -> list[str]:
    """Cut a name into words of small letters without accents; numbers at the end go, unless they belong (h3, ipv4)."""
    folded = name.replace("ß", "ss").replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")
    folded = folded.replace("Ä", "Ae").replace("Ö", "Oe").replace("Ü", "Ue").replace("ł", "l").replace("ø", "o")
    plain = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", plain)
    parted = re.sub(r"([A-Z])([A-Z][a-z])", r"\1 \2", parted)
    words = re.findall(r"\w+", parted.replace("_", " ").lower())
    return [known for word in words for known in _without_number(word) if known]


def _without_number(word: str) -> list[str]:
    if word in _known() or word.isdigit():
        return [word] if not word.isdigit() else []
    return re.findall(r"[^\W\d]+|(?<=[a-z])\d(?=[a-z]\w*)", word) if re.search(r"\d", word) else [word]


@cache
def _known() -> dict[str, Kind]:
    lists: tuple[tuple[Kind, str], ...] = (("motion", MOTION), ("person", PERSON), ("time", TIME), ("place", PLACE))
    return {word: kind for kind, words in lists for word in words.split()}


@cache
def _long() -> tuple[tuple[str, Kind], ...]:
    unclear = {"second", "office", "subject", "record", "length", "minute", "region", "serial", "course", "height"}
    return tuple((word, kind) for word, kind in _known().items() if len(word) >= LONG and word not in unclear)
